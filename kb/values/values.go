// Package values is the knowledge base of a store: values that agents read and write,
// who wrote them, and two indexes of their words, one of which masks are applied to.
//
// [Values] are in the process that owns the store; a [Client] asks for them from any.
package values

import (
	"sync"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// Options are those of a store's values.
type Options struct {
	Tenant      string
	Domains     []string
	Mask        func(domain string, value []byte) []byte
	MaskVersion string
	Now         func() time.Time
}

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

// Start lets changes be made.
func (v *Values) Start() { go v.commitLoop() }

// Close commits what is waiting.
func (v *Values) Close() {
	close(v.quit)
	<-v.stopped
	v.reads.changed()
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

// Handlers are those of requests to values.
var Handlers = [...]wire.Handler[*Values]{
	wire.Handles[*Values, getRequest, valueAnswer](),
	wire.Handles[*Values, changeRequest, changeAnswer](),
	wire.Handles[*Values, putAllRequest, putAllAnswer](),
	wire.Handles[*Values, listRequest, listAnswer](),
	wire.Handles[*Values, searchRequest, searchAnswer](),
	wire.Handles[*Values, whyRequest, Chain](),
	wire.Handles[*Values, tallyRequest, tallyAnswer](),
	wire.Handles[*Values, verifyRequest, verifyAnswer](),
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
