package values

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// Do hands a change to the committer and waits for its answer.
func (q *changeRequest) Do(ctx context.Context, v *Values) (*changeAnswer, error) {
	c, err := v.prepare(q)
	if err != nil {
		return nil, err
	}
	if err := v.queue(ctx, c); err != nil {
		return nil, err
	}
	revision, err := v.await(c)
	return &changeAnswer{revision}, err
}

// Start lets changes be made.
func (v *Values) Start() { go v.commitLoop() }

// Close commits what is waiting.
func (v *Values) Close() {
	close(v.quit)
	<-v.stopped
	v.reads.changed()
}

// prepare does of a change what the committer need not.
func (v *Values) prepare(q *changeRequest) (*change, error) {
	if err := checkKey(q.Key); err != nil {
		return nil, err
	}
	if len(q.Value) > maxValue {
		return nil, wire.Invalidf("a value of %d bytes is more than 1 MiB", len(q.Value))
	}
	if err := q.Origin.check(); err != nil {
		return nil, err
	}
	c := &change{req: q, done: make(chan committed, 1)}
	if !q.Delete {
		doc, err := v.document(q.Domain, q.Value)
		if err != nil {
			return nil, err
		}
		c.doc = doc
	}
	return c, nil
}

// queue hands a change to the committer.
func (v *Values) queue(ctx context.Context, c *change) error {
	select {
	case v.changes <- c:
		return nil
	case <-v.quit:
		return wire.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await waits for the answer to a change that was handed over.
func (v *Values) await(c *change) (revision uint64, err error) {
	select {
	case r := <-c.done:
		return r.revision, r.err
	case <-v.stopped:
		select {
		case r := <-c.done:
			return r.revision, r.err
		default:
			return 0, wire.ErrClosed
		}
	}
}

// commitLoop takes what is waiting, commits it, answers, and begins again: the
// longer a commit takes, the more the next one carries.
func (v *Values) commitLoop() {
	defer close(v.stopped)
	for {
		select {
		case c := <-v.changes:
			v.commit(v.take(c))
		case <-v.quit:
			for {
				select {
				case c := <-v.changes:
					v.commit(v.take(c))
				default:
					return
				}
			}
		}
	}
}

// take collects what is waiting behind first, up to what one commit can carry.
func (v *Values) take(first *change) []*change {
	batch := []*change{first}
	size := len(first.req.Value)
	for len(batch) < batchItems && size < batchBytes {
		select {
		case c := <-v.changes:
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
func (v *Values) commit(batch []*change) {
	answers, err := v.transact(batch)
	if errors.Is(err, badger.ErrTxnTooBig) && len(batch) > 1 {
		half := len(batch) / 2
		v.commit(batch[:half])
		v.commit(batch[half:])
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
func (v *Values) transact(batch []*change) ([]committed, error) {
	answers := make([]committed, len(batch))
	v.writing.Lock()
	defer v.writing.Unlock()
	if err := errors.Join(v.serves(), v.db.Room()); err != nil {
		return answers, err
	}
	defer v.reads.changed()
	txn := v.db.NewTransaction(true)
	defer txn.Discard()
	rev, err := db.GetNumber(txn, keyRev())
	for i, c := range batch {
		if err != nil {
			return answers, err
		}
		answers[i].revision, err = v.apply(txn, c, &rev)
		if f := wire.FailureOf(err); f == wire.FailNotExist || f == wire.FailConflict {
			answers[i].err, err = err, nil // refused before it changed anything
		}
	}
	if err == nil {
		err = txn.Set(keyRev(), db.Number(nil, rev))
	}
	if err == nil {
		err = txn.Commit()
	}
	return answers, err
}

// What one transaction carries, of what badger takes at once. The largest value
// changes with its index in one: 1 MiB, and for each of words.MaxTerms words in two
// indexes a chunk of at most 361 bytes that it leaves and one that it enters.
const (
	batchBytes = 256 << 10 // of values, and one more value
	batchItems = 128
)

// keepAnswer is how long the answer of a change is remembered for a client
// that may ask again; it is far longer than a client tries.
const keepAnswer = 10 * time.Minute

// apply makes one change within txn. An error that is fs.ErrNotExist or
// ErrConflict means that nothing was changed.
func (v *Values) apply(txn *badger.Txn, c *change, rev *uint64) (uint64, error) {
	q := c.req
	if q.ID != nil {
		if before, err := db.GetNumber(txn, keyOp(q.ID)); err != nil || before != 0 {
			return before, err
		}
	}
	meta, err := v.meta(txn, q.Domain, q.Key)
	if err != nil && (q.Delete || wire.FailureOf(err) != wire.FailNotExist) {
		return 0, err
	}
	if q.Compare && meta.Revision != q.Revision {
		return 0, fmt.Errorf("%w: %s/%s has revision %d, not %d", wire.ErrConflict, q.Domain, q.Key, meta.Revision,
			q.Revision)
	}
	*rev++
	if err = v.replace(txn, c, meta, *rev); err == nil && q.ID != nil {
		err = txn.SetEntry(badger.NewEntry(keyOp(q.ID), db.Number(nil, *rev)).WithTTL(keepAnswer))
	}
	return *rev, err
}

// replace puts a change in the place of the value whose meta is was, with all
// that is known of it: value, index, chain and tally change together.
func (v *Values) replace(txn *badger.Txn, c *change, was meta, rev uint64) error {
	q := c.req
	t, err := readTally(txn, q.Domain)
	if err != nil {
		return err
	}
	if was.Revision != 0 {
		masked, raw, err := v.removeDoc(txn, q.Domain, was.Revision)
		if err != nil {
			return err
		}
		t.count(masked, raw, ^uint64(0))
		t.values--
		t.bytes -= uint64(was.Size)
	}
	step := Step{Revision: rev, Deleted: q.Delete, Size: len(q.Value), Origin: v.opt.stamped(q.Origin)}
	if step.Deleted {
		err = errors.Join(txn.Delete(keyMeta(q.Domain, q.Key)), txn.Delete(keyData(q.Domain, q.Key)))
	} else {
		t.add(c.doc, len(q.Value))
		err = errors.Join(v.set(txn, c, rev, step.Origin), v.addDoc(txn, q.Domain, q.Key, rev, c.doc))
	}
	return errors.Join(err, v.addStep(txn, q.Domain, q.Key, step), txn.Set(keyTally(q.Domain), t.encode()))
}

// set stores a value and its meta.
func (v *Values) set(txn *badger.Txn, c *change, rev uint64, o Origin) error {
	q := c.req
	m, err := v.codec.Marshal(meta{Revision: rev, Size: len(q.Value), Origin: o, Sum: sumOf(q.Domain, q.Key, rev,
		q.Value)})
	if err != nil {
		return err
	}
	return errors.Join(txn.Set(keyMeta(q.Domain, q.Key), m), txn.Set(keyData(q.Domain, q.Key), joinData(rev, m, q.Value,
		c.doc.plain, o.Label == Trusted)))
}
