// Package values is the knowledge base of a store: values that agents read and write,
// who wrote them, and two indexes of their words, one of which masks are applied to.
//
// [Values] are in the process that owns the store; a [Client] asks for them from any.
package values

import (
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// Values are those of a store, with their indexes, in the process that owns it.
// Changes go through one goroutine, which commits what is waiting together.
type Values struct {
	db    *db.Database
	codec *audit.Codec
	opt   Options

	changes chan *change
	stopped chan struct{} // closed when the committer has gone
	quit    chan struct{}
	serves  func() error // why nothing may be read or changed now
	writing sync.Mutex   // held by who commits changes
	reads   reads
}

// New are the values in a database, while serves has no objection.
func New(db *db.Database, codec *audit.Codec, o Options, serves func() error) *Values {
	return &Values{
		db: db, codec: codec, opt: o, serves: serves,
		changes: make(chan *change, 256), stopped: make(chan struct{}), quit: make(chan struct{}),
	}
}

// A Client asks for values, whichever process has them.
type Client struct {
	asker wire.Asker[*Values]
	opt   *Options
}

// NewClient asks for values of a store with these options.
func NewClient(asker wire.Asker[*Values], o *Options) Client {
	return Client{asker, o}
}

// Rewrite keeps changes out until release is called, for somebody who writes to the
// database past them.
func (v *Values) Rewrite() (release func()) {
	v.writing.Lock()
	return func() {
		v.reads.changed()
		v.writing.Unlock()
	}
}

// Spaces are the spaces of values, in the order in which they are verified.
var Spaces = []byte{spaceMeta, SpaceData, SpaceChain, spaceDoc, spaceIndex, spaceTally}

// reads keeps one view of the database for the next who reads a value: to make
// one costs as much as to read. It is that of the newest commit or is not used,
// so that whoever was told of a change sees it.
type reads struct {
	commits atomic.Uint64
	idle    atomic.Pointer[reader]
}

type reader struct {
	txn *badger.Txn
	at  uint64 // commits when it was made
}

// changed says that values have changed; who is told of it is told later.
func (r *reads) changed() {
	r.commits.Add(1)
	if old := r.idle.Swap(nil); old != nil {
		old.txn.Discard()
	}
}
