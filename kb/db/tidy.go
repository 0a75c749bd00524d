package db

import (
	"reflect"
	"runtime"
	"runtime/debug"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"
)

// garbage bounds how much the heap grows while journals are taken in, before it is
// collected and given back to the system. Badger's tables in the making are tens of
// megabytes each, and the collector by itself lets as much garbage come together as
// is in use. Short intakes never come so far.
const garbage = 16 << 20

// A HeapWatch is how large the heap was when it was last collected.
type HeapWatch struct{ since uint64 }

// Tidy gives up what db keeps for tables to come, and collects what has come
// together since it was first called.
func (w *HeapWatch) Tidy(db *badger.DB) {
	emptyPool(tablePool(db))
	now := heapSize()
	if w.since != 0 && now <= w.since+garbage {
		return
	}
	if w.since != 0 {
		debug.FreeOSMemory()
		now = heapSize()
	}
	w.since = now
}

// heapSize is what the heap has of the system.
func heapSize() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.HeapIdle - m.HeapReleased
}

// Of the pool that badger has for the tables that it makes.
const (
	poolSize     = 8
	smallestPool = 512 // bytes; what the pool makes when it is empty
)

// tablePool is where db keeps what it made tables in, for the next ones; nil: this
// version has it elsewhere, and keeps it.
func tablePool(db *badger.DB) *z.AllocatorPool {
	f := reflect.ValueOf(db).Elem().FieldByName("allocPool")
	if !f.IsValid() || f.Type() != reflect.TypeFor[*z.AllocatorPool]() {
		return nil
	}
	return (*z.AllocatorPool)(f.UnsafePointer())
}

// emptyPool gives up what waits in the pool. Each buffer grows to the largest table
// that it ever served for, twice 32 MiB, and badger gives one up only when it makes
// no tables for two seconds: while a large journal is taken in it comes to have
// eight of them.
func emptyPool(pool *z.AllocatorPool) {
	if pool == nil {
		return
	}
	for range poolSize {
		buffer := pool.Get(smallestPool, "")
		kept := buffer.Allocated() > smallestPool
		buffer.Release()
		if !kept {
			return
		}
	}
}
