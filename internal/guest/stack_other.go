//go:build !linux

package guest

// reserveStack is memory that systems give when it is first used.
func reserveStack(uint64) []byte { return make([]byte, mostStack+2*pageSize) }

func releaseStack([]byte) {}

func forget([]byte) {}

// touched cannot be told here.
func touched([]byte) uint64 { return 0 }
