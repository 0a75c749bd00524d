//go:build linux && !race

package lane

// confinedEnv makes a confined rlp a small process.
func confinedEnv() []string { return []string{"GOGC=off", "GOMAXPROCS=1"} }
