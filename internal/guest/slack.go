//go:build !race

package guest

// slack multiplies the compiler's bounds.
const slack = 1
