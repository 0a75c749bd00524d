package kb

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
}

// A change is a request that waits for the committer.
type change struct {
	req  *request
	done chan *response // takes one without a reader
}

func openEngine(o Options, l layout) (*engine, error) {
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
	db, err := openDatabase(l.kb)
	if err != nil {
		return nil, err
	}
	e := &engine{
		db: db, codec: codec, opt: o, journal: l.journal,
		changes: make(chan *change, 256), stopped: make(chan struct{}), quit: make(chan struct{}),
		ingesting: make(chan struct{}, 1),
	}
	go e.commitLoop()
	return e, nil
}

// close commits what is waiting and closes the database.
func (e *engine) close() error {
	close(e.quit)
	<-e.stopped
	e.ingesting <- struct{}{}
	if err := e.db.Close(); err != nil {
		return fmt.Errorf("closing the store: %w", err)
	}
	return nil
}

// do answers one request.
func (e *engine) do(ctx context.Context, q *request) (*response, error) {
	switch q.Op {
	case opGet, opPut, opDelete, opList:
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
	case opList:
		return e.list(q)
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
	return nil, invalidf("operation %d is not known", q.Op)
}

// submit hands a change to the committer and waits for its answer.
func (e *engine) submit(ctx context.Context, q *request) (*response, error) {
	if err := checkKey(q.Key); err != nil {
		return nil, err
	}
	if len(q.Value) > maxValue {
		return nil, invalidf("a value of %d bytes is more than 1 MiB", len(q.Value))
	}
	c := &change{q, make(chan *response, 1)}
	select {
	case e.changes <- c:
	case <-e.quit:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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

// commit applies a batch in order, in one transaction, and answers when it is durable.
func (e *engine) commit(batch []*change) {
	if len(batch) > 1 && len(batch[len(batch)-1].req.Value) > batchBytes {
		// One large value at the end would make the transaction too large.
		e.commit(batch[:len(batch)-1])
		batch = batch[len(batch)-1:]
	}
	txn := e.db.NewTransaction(true)
	defer txn.Discard()
	answers := make([]*response, len(batch))
	rev, err := getNumber(txn, keyRev())
	for i, c := range batch {
		if err != nil {
			break
		}
		var r *response
		r, err = e.apply(txn, c.req, &rev)
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
	for i, c := range batch {
		if err != nil {
			answers[i] = answer(nil, fmt.Errorf("writing to the store: %w", err))
		}
		c.done <- answers[i]
	}
}

// keepAnswer is how long the answer of a change is remembered for a client
// that may ask again; it is far longer than a client tries.
const keepAnswer = 10 * time.Minute

// apply makes one change within txn. An error that is fs.ErrNotExist or
// ErrConflict means that nothing was changed.
func (e *engine) apply(txn *badger.Txn, q *request, rev *uint64) (*response, error) {
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
	if q.Op == opDelete {
		err = errors.Join(txn.Delete(keyMeta(q.Domain, q.Key)), txn.Delete(keyData(q.Domain, q.Key)))
	} else {
		err = e.set(txn, q, *rev)
	}
	if err == nil && q.ID != nil {
		err = txn.SetEntry(badger.NewEntry(keyOp(q.ID), number(nil, *rev)).WithTTL(keepAnswer))
	}
	return &response{Revision: *rev}, err
}

// set stores a value and its meta.
func (e *engine) set(txn *badger.Txn, q *request, rev uint64) error {
	o := q.Origin
	o.Tenant, o.UnixMS = e.opt.Tenant, e.opt.Now().UnixMilli()
	meta, err := e.codec.Marshal(Entry{Revision: rev, Size: len(q.Value), Origin: o})
	if err != nil {
		return err
	}
	return errors.Join(txn.Set(keyMeta(q.Domain, q.Key), meta), txn.Set(keyData(q.Domain, q.Key), slices.Clone(q.Value)))
}
