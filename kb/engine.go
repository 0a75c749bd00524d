package kb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
)

// An engine is the store in the process that owns it. Changes to values go
// through one goroutine, which commits what is waiting together; the log is
// written by whoever holds ingesting.
type engine struct {
	db      *badger.DB
	codec   *audit.Codec
	opt     Options
	journal string

	changes chan *change
	stopped chan struct{} // closed when the committer has gone
	quit    chan struct{}

	ingesting chan struct{} // holds one token while somebody takes in journals
	writing   sync.Mutex    // held by who commits changes to values
	shut      atomic.Bool   // a restore is under way, or was interrupted
	flushes   *listener     // of those that failed
	room      func() error  // why nothing may be written now
	inspected bool          // the log was looked at before it grew, by who has the token
	removed   uint64        // up to which record pruning has removed them, as far as this process knows
	unfreed   int           // how many of them still take room
	growth                  // of the log, for who has the token
	snapshots snapshots
	walks     walks
	reads     reads
}

// A change is a request that waits for the committer.
type change struct {
	req  *changeRequest
	doc  *document      // of a put: what the index takes from it
	done chan committed // takes one without a reader
}

// A committed is what became of a change.
type committed struct {
	revision uint64
	err      error
}

// A changeRequest puts a value in the place of what is there, or removes that.
type changeRequest struct {
	ID       []byte `cbor:"1,keyasint,omitempty"` // the same ID is applied once
	Domain   string `cbor:"2,keyasint"`
	Key      string `cbor:"3,keyasint"`
	Delete   bool   `cbor:"4,keyasint,omitempty"`
	Value    []byte `cbor:"5,keyasint,omitempty"`
	Compare  bool   `cbor:"6,keyasint,omitempty"` // a put that wants Revision to be the stored one
	Revision uint64 `cbor:"7,keyasint,omitempty"`
	Origin   Origin `cbor:"8,keyasint"`
}

// A changeAnswer has the revision that the change made.
type changeAnswer struct {
	Revision uint64 `cbor:"1,keyasint"`
}

func (*changeRequest) op() opcode { return opChange }

func (q *changeRequest) identify() {
	if q.ID == nil {
		q.ID = newID()
	}
}

func (q *changeRequest) check() error { return checkDomain(q.Domain) }

// openEngine opens a store and brings it to the layout of this program.
func openEngine(o Options, l layout) (*engine, error) {
	e, err := newEngine(o, l)
	if err != nil {
		return nil, err
	}
	if err := e.begin(); err != nil {
		return nil, errors.Join(err, e.db.Close())
	}
	go e.commitLoop()
	return e, nil
}

// newEngine opens a store as it is.
func newEngine(o Options, l layout) (*engine, error) {
	codec, err := audit.NewCodec()
	if err != nil {
		return nil, err
	}
	if err := makeDir(l.kb, 0o077); err != nil {
		return nil, err
	}
	if err := roomLeft(l.kb); err != nil {
		return nil, err
	}
	leafer, err := newLeafer()
	if err != nil {
		return nil, err
	}
	f := &listener{failed: make(chan error, 1), free: func() error { return descriptorsLeft(minDescriptors) }}
	db, err := openDatabase(l.kb, f)
	if err != nil {
		return nil, err
	}
	return &engine{
		growth: growth{leafer: leafer},
		db:     db, codec: codec, opt: o, journal: l.journal,
		changes: make(chan *change, 256), stopped: make(chan struct{}), quit: make(chan struct{}),
		ingesting: make(chan struct{}, 1),
		flushes:   f, room: func() error { return roomLeft(l.kb) },
	}, nil
}

// begin sees to it that the database is as this program wants it.
func (e *engine) begin() error {
	_, under, err := e.restoring()
	if err != nil {
		return err
	}
	e.shut.Store(under)
	if under {
		return nil
	}
	return e.migrate()
}

// close commits what is waiting and closes the database.
func (e *engine) close() error {
	close(e.quit)
	<-e.stopped
	e.ingesting <- struct{}{}
	e.snapshots.endAll()
	e.walks.endAll()
	e.reads.changed()
	if err := e.db.Close(); err != nil {
		return fmt.Errorf("closing the store: %w", err)
	}
	return nil
}

// mayServe is an error while a restore is under way.
func (e *engine) mayServe() error {
	if e.shut.Load() {
		return fmt.Errorf("%w: a restore is under way or was interrupted; rlp kb restore begins it again", ErrUnavailable)
	}
	return nil
}

// do hands a change to the committer and waits for its answer.
func (q *changeRequest) do(ctx context.Context, e *engine) (*changeAnswer, error) {
	c, err := e.prepare(q)
	if err != nil {
		return nil, err
	}
	if err := e.queue(ctx, c); err != nil {
		return nil, err
	}
	revision, err := e.await(c)
	return &changeAnswer{revision}, err
}

// prepare does of a change what the committer need not.
func (e *engine) prepare(q *changeRequest) (*change, error) {
	if err := checkKey(q.Key); err != nil {
		return nil, err
	}
	if len(q.Value) > maxValue {
		return nil, invalidf("a value of %d bytes is more than 1 MiB", len(q.Value))
	}
	if err := q.Origin.check(); err != nil {
		return nil, err
	}
	c := &change{req: q, done: make(chan committed, 1)}
	if !q.Delete {
		doc, err := e.document(q.Domain, q.Value)
		if err != nil {
			return nil, err
		}
		c.doc = doc
	}
	return c, nil
}

// queue hands a change to the committer.
func (e *engine) queue(ctx context.Context, c *change) error {
	select {
	case e.changes <- c:
		return nil
	case <-e.quit:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await waits for the answer to a change that was handed over.
func (e *engine) await(c *change) (revision uint64, err error) {
	select {
	case r := <-c.done:
		return r.revision, r.err
	case <-e.stopped:
		select {
		case r := <-c.done:
			return r.revision, r.err
		default:
			return 0, ErrClosed
		}
	}
}

// commitLoop takes what is waiting, commits it, answers, and begins again: the
// longer a commit takes, the more the next one carries.
func (e *engine) commitLoop() {
	defer close(e.stopped)
	for {
		select {
		case c := <-e.changes:
			e.commit(e.take(c))
		case <-e.quit:
			for {
				select {
				case c := <-e.changes:
					e.commit(e.take(c))
				default:
					return
				}
			}
		}
	}
}

// take collects what is waiting behind first, up to what one commit can carry.
func (e *engine) take(first *change) []*change {
	batch := []*change{first}
	size := len(first.req.Value)
	for len(batch) < batchItems && size < batchBytes {
		select {
		case c := <-e.changes:
			batch = append(batch, c)
			size += len(c.req.Value)
		default:
			return batch
		}
	}
	return batch
}

// commit applies a batch in order, in one transaction, and answers when it is
// durable. What does not fit into one is divided.
func (e *engine) commit(batch []*change) {
	answers, err := e.transact(batch)
	if errors.Is(err, badger.ErrTxnTooBig) && len(batch) > 1 {
		half := len(batch) / 2
		e.commit(batch[:half])
		e.commit(batch[half:])
		return
	}
	for i, c := range batch {
		if err != nil {
			answers[i] = committed{err: fmt.Errorf("writing to the store: %w", err)}
		}
		c.done <- answers[i]
	}
}

// transact applies a batch; an error means that nothing was changed.
func (e *engine) transact(batch []*change) ([]committed, error) {
	answers := make([]committed, len(batch))
	e.writing.Lock()
	defer e.writing.Unlock()
	if err := errors.Join(e.mayServe(), e.room()); err != nil {
		return answers, err
	}
	defer e.reads.changed()
	txn := e.db.NewTransaction(true)
	defer txn.Discard()
	rev, err := getNumber(txn, keyRev())
	for i, c := range batch {
		if err != nil {
			return answers, err
		}
		answers[i].revision, err = e.apply(txn, c, &rev)
		if f := failureOf(err); f == failNotExist || f == failConflict {
			answers[i].err, err = err, nil // refused before it changed anything
		}
	}
	if err == nil {
		err = txn.Set(keyRev(), number(nil, rev))
	}
	if err == nil {
		err = txn.Commit()
	}
	return answers, err
}

// keepAnswer is how long the answer of a change is remembered for a client
// that may ask again; it is far longer than a client tries.
const keepAnswer = 10 * time.Minute

// apply makes one change within txn. An error that is fs.ErrNotExist or
// ErrConflict means that nothing was changed.
func (e *engine) apply(txn *badger.Txn, c *change, rev *uint64) (uint64, error) {
	q := c.req
	if q.ID != nil {
		if before, err := getNumber(txn, keyOp(q.ID)); err != nil || before != 0 {
			return before, err
		}
	}
	meta, err := e.meta(txn, q.Domain, q.Key)
	if err != nil && (q.Delete || failureOf(err) != failNotExist) {
		return 0, err
	}
	if q.Compare && meta.Revision != q.Revision {
		return 0, fmt.Errorf("%w: %s/%s has revision %d, not %d", ErrConflict, q.Domain, q.Key, meta.Revision, q.Revision)
	}
	*rev++
	if err = e.replace(txn, c, meta, *rev); err == nil && q.ID != nil {
		err = txn.SetEntry(badger.NewEntry(keyOp(q.ID), number(nil, *rev)).WithTTL(keepAnswer))
	}
	return *rev, err
}

// replace puts a change in the place of the value whose meta is was, with all
// that is known of it: value, index, chain and tally change together.
func (e *engine) replace(txn *badger.Txn, c *change, was meta, rev uint64) error {
	q := c.req
	t, err := readTally(txn, q.Domain)
	if err != nil {
		return err
	}
	if was.Revision != 0 {
		masked, raw, err := e.removeDoc(txn, q.Domain, was.Revision)
		if err != nil {
			return err
		}
		t.count(masked, raw, ^uint64(0))
		t.values--
		t.bytes -= uint64(was.Size)
	}
	step := Step{Revision: rev, Deleted: q.Delete, Size: len(q.Value), Origin: e.opt.stamped(q.Origin)}
	if step.Deleted {
		err = errors.Join(txn.Delete(keyMeta(q.Domain, q.Key)), txn.Delete(keyData(q.Domain, q.Key)))
	} else {
		t.add(c.doc, len(q.Value))
		err = errors.Join(e.set(txn, c, rev, step.Origin), e.addDoc(txn, q.Domain, q.Key, rev, c.doc))
	}
	return errors.Join(err, e.addStep(txn, q.Domain, q.Key, step), txn.Set(keyTally(q.Domain), t.encode()))
}

// set stores a value and its meta.
func (e *engine) set(txn *badger.Txn, c *change, rev uint64, o Origin) error {
	q := c.req
	m, err := e.codec.Marshal(meta{Revision: rev, Size: len(q.Value), Origin: o, Sum: sumOf(q.Domain, q.Key, rev,
		q.Value)})
	if err != nil {
		return err
	}
	return errors.Join(txn.Set(keyMeta(q.Domain, q.Key), m), txn.Set(keyData(q.Domain, q.Key), joinData(rev, m, q.Value,
		c.doc.plain, o.Label == Trusted)))
}
