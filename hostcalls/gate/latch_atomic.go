//go:build !amd64 || race

package gate

import "sync/atomic"

func store(at *atomic.Uint32, n uint32) { at.Store(n) }

// fence is nothing where each store has one.
func fence() {}
