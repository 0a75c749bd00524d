//go:build !amd64 || race

package gate

import "sync/atomic"

func add(at *atomic.Uint32, n uint32) { at.Add(n) }

// fence is nothing where each addition has one.
func fence() {}
