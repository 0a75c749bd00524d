package kb

import (
	"sync"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// valueOptions are those of a store's values.
type valueOptions struct {
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
	opt   valueOptions

	changes chan *change
	stopped chan struct{} // closed when the committer has gone
	quit    chan struct{}
	serves  func() error // why nothing may be read or changed now
	writing sync.Mutex   // held by who commits changes
	reads   reads
}

// newValues are the values in a database, while serves has no objection.
func newValues(db *db.Database, codec *audit.Codec, o valueOptions, serves func() error) *Values {
	return &Values{
		db: db, codec: codec, opt: o, serves: serves,
		changes: make(chan *change, 256), stopped: make(chan struct{}), quit: make(chan struct{}),
	}
}

// start lets changes be made.
func (v *Values) start() { go v.commitLoop() }

// close commits what is waiting.
func (v *Values) close() {
	close(v.quit)
	<-v.stopped
	v.reads.changed()
}

// A valueClient asks for values, whichever process has them.
type valueClient struct {
	asker wire.Asker[*Values]
	opt   *valueOptions
}

// newValueClient asks for values of a store with these options.
func newValueClient(asker wire.Asker[*Values], o *valueOptions) valueClient {
	return valueClient{asker, o}
}

// valueHandlers are those of requests to values.
var valueHandlers = [...]wire.Handler[*Values]{
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

// valueSpaces are the spaces of values, in the order in which they are verified.
var valueSpaces = []byte{spaceMeta, spaceData, spaceChain, spaceDoc, spaceIndex, spaceTally}
