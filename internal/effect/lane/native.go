package lane

// What a program gets when nothing is said.
const (
	MaxData      int64 = 1 << 30 // bytes of memory
	MaxProcesses int64 = 256
)
