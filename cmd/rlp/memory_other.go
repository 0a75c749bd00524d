//go:build !linux

package main

// memoryForRuns cannot be told here: [serve] memory says it.
func memoryForRuns() int64 { return 0 }
