//go:build !linux

package compose

// MemoryForRuns cannot be told here: [serve] memory says it.
func MemoryForRuns() int64 { return 0 }
