//go:build linux && race

package lane

// confinedEnv makes a confined rlp a small process, which the race detector would
// otherwise keep a second longer.
func confinedEnv() []string {
	return []string{"GOGC=off", "GOMAXPROCS=1", "GORACE=atexit_sleep_ms=0"}
}
