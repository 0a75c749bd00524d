package kb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/audit"
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
	req  *request
	doc  *document      // of a put: what the index takes from it
	done chan *response // takes one without a reader
}

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

// do answers one request.
func (e *engine) do(ctx context.Context, q *request) (*response, error) {
	if err := e.mayServe(); err != nil && q.Op != opRestore {
		return nil, err
	}
	switch q.Op {
	case opGet, opPut, opDelete, opList, opSearch, opWhy, opPutAll:
		// Which domains there are is said by the settings of who asks.
		if !validDomain(q.Domain) {
			return nil, fmt.Errorf("%w: %q", ErrDomain, q.Domain)
		}
	case opSeek, opPage:
		if err := q.Filter.check(); err != nil {
			return nil, err
		}
	}
	switch q.Op {
	case opGet:
		return e.get(q)
	case opPut, opDelete:
		return e.submit(ctx, q)
	case opPutAll:
		return e.submitAll(ctx, q)
	case opList:
		return e.list(q)
	case opSearch:
		return e.search(ctx, q)
	case opWhy:
		return e.why(q)
	case opTally:
		return e.tallies()
	case opVerify:
		return e.verify(ctx, q)
	case opBackup:
		return e.backup(ctx, q)
	case opRestore:
		return e.restore(ctx, q)
	case opIngest:
		ctx, cancel := context.WithTimeout(ctx, ingestStep)
		defer cancel()
		done, err := e.ingest(ctx)
		return &response{Ingested: done}, err
	case opSeek:
		return e.seek(ctx, q)
	case opPage:
		return e.page(ctx, q)
	}
	return e.doLog(ctx, q)
}

// doLog answers a request about the log as a whole.
func (e *engine) doLog(ctx context.Context, q *request) (*response, error) {
	switch q.Op {
	case opRuns:
		return e.runs(ctx, &q.Runs)
	case opHead:
		return e.head()
	case opSeal:
		return e.seal(ctx)
	case opCheckpoints:
		return e.checkpoints(q)
	case opInclusion:
		return e.inclusion(q)
	case opConsistency:
		return e.consistency(q)
	case opVerifyLog:
		return e.verifyLog(ctx, q)
	case opPrune:
		return e.prune(ctx, q)
	case opMarks:
		return e.marks(q)
	case opRecord:
		return e.recordOne(ctx, q)
	case opOutcomes:
		return e.outcomes(q)
	}
	return nil, invalidf("operation %d is not known", q.Op)
}

// submit hands a change to the committer and waits for its answer.
func (e *engine) submit(ctx context.Context, q *request) (*response, error) {
	c, err := e.prepare(q)
	if err != nil {
		return nil, err
	}
	if err := e.queue(ctx, c); err != nil {
		return nil, err
	}
	return e.await(c)
}

// prepare does of a change what the committer need not.
func (e *engine) prepare(q *request) (*change, error) {
	if err := checkKey(q.Key); err != nil {
		return nil, err
	}
	if len(q.Value) > maxValue {
		return nil, invalidf("a value of %d bytes is more than 1 MiB", len(q.Value))
	}
	if err := q.Origin.check(); err != nil {
		return nil, err
	}
	c := &change{req: q, done: make(chan *response, 1)}
	if q.Op == opPut {
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
func (e *engine) await(c *change) (*response, error) {
	select {
	case r := <-c.done:
		return r.result()
	case <-e.stopped:
		select {
		case r := <-c.done:
			return r.result()
		default:
			return nil, ErrClosed
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
			answers[i] = answer(nil, fmt.Errorf("writing to the store: %w", err))
		}
		c.done <- answers[i]
	}
}

// transact applies a batch; an error means that nothing was changed.
func (e *engine) transact(batch []*change) ([]*response, error) {
	answers := make([]*response, len(batch))
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
		var r *response
		r, err = e.apply(txn, c, &rev)
		if f := failureOf(err); f == failNotExist || f == failConflict {
			r, err = answer(nil, err), nil // refused before it changed anything
		}
		answers[i] = r
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
func (e *engine) apply(txn *badger.Txn, c *change, rev *uint64) (*response, error) {
	q := c.req
	if q.ID != nil {
		if before, err := getNumber(txn, keyOp(q.ID)); err != nil || before != 0 {
			return &response{Revision: before}, err
		}
	}
	meta, err := e.meta(txn, q.Domain, q.Key)
	if err != nil && failureOf(err) != failNotExist {
		return nil, err
	}
	switch {
	case q.Op == opDelete && err != nil:
		return nil, err
	case q.Op == opPut && q.Compare && meta.Revision != q.Revision:
		return nil, fmt.Errorf("%w: %s/%s has revision %d, not %d", ErrConflict, q.Domain, q.Key, meta.Revision, q.Revision)
	}
	*rev++
	if err = e.replace(txn, c, meta, *rev); err == nil && q.ID != nil {
		err = txn.SetEntry(badger.NewEntry(keyOp(q.ID), number(nil, *rev)).WithTTL(keepAnswer))
	}
	return &response{Revision: *rev}, err
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
	step := Step{Revision: rev, Deleted: q.Op == opDelete, Size: len(q.Value), Origin: e.opt.stamped(q.Origin)}
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
	m, err := e.codec.Marshal(meta{Revision: rev, Size: len(q.Value), Origin: o, Sum: sumOf(q.Domain, q.Key, rev, q.Value)})
	if err != nil {
		return err
	}
	return errors.Join(txn.Set(keyMeta(q.Domain, q.Key), m), txn.Set(keyData(q.Domain, q.Key), joinData(rev, m, q.Value, c.doc.plain, o.Label == Trusted)))
}
