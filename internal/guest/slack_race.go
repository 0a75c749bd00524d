//go:build race

package guest

// slack multiplies the compiler's bounds: under the race detector everything
// takes that much more.
const slack = 16
