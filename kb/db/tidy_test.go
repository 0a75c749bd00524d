package db

import (
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"
)

// TestWhatTablesWereMadeInIsGivenUp holds where this version of badger keeps it, too.
func TestWhatTablesWereMadeInIsGivenUp(t *testing.T) {
	db, err := badger.Open(DatabaseOptions(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	pool := tablePool(db)
	if pool == nil {
		t.Fatal("badger keeps what it makes tables in elsewhere: its memory is not bounded")
	}
	var buffers []*z.Allocator
	for range 3 {
		buffers = append(buffers, pool.Get(1<<20, "a table"))
	}
	for _, b := range buffers {
		pool.Return(b)
	}
	buffer := pool.Get(smallestPool, "the next")
	if buffer.Allocated() < 1<<20 {
		t.Fatal("control: the pool keeps nothing")
	}
	pool.Return(buffer)
	emptyPool(pool)
	if buffer = pool.Get(smallestPool, "after it"); buffer.Allocated() > smallestPool {
		t.Errorf("%d bytes are kept", buffer.Allocated())
	}
	buffer.Release()
	emptyPool(nil)
}
