//go:build race

package guest

// slack multiplies the compiler's bounds: under the race detector everything
// takes that much more.
const slack = 16

// childEnv is all of the compiler's environment: the race detector would
// otherwise keep it a second longer.
func childEnv() []string { return []string{"GORACE=atexit_sleep_ms=0"} }
