package kb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

// ErrNotEmpty says that a store has values and nobody said that they may go.
var ErrNotEmpty = errors.New("store is not empty")

// A stage is one step of a restore.
type stage uint8

const (
	restoreBegin stage = iota + 1
	restorePage
	restoreEnd
)

// A restoring is what the store remembers while a restore is under way.
type restoring struct {
	Shift   uint64 `cbor:"1,keyasint"` // added to each revision
	LogKept bool   `cbor:"2,keyasint"`
}

// A restorable is a pair of a backup taken apart.
type restorable struct {
	space       byte
	domain, key string // of a value or chain; key is the run of a state
	meta        meta
	value       []byte
	chain       Chain
	record      audit.Record
	stored      []byte
	done        bool // of a state: nothing more will come from its journal
}

// parsePair checks a pair of a backup. It trusts nothing.
func parsePair(codec *audit.Codec, p pair) (restorable, error) {
	if len(p.Key) == 0 {
		return restorable{}, invalidf("a pair without a key")
	}
	r := restorable{space: p.Key[0], stored: p.Value}
	switch r.space {
	case spaceData, spaceChain:
		domain, key, ok := splitNamed(p.Key)
		if !ok || !validDomain(domain) {
			return r, invalidf("a value in no domain")
		}
		if err := checkKey(string(key)); err != nil {
			return r, err
		}
		r.domain, r.key = domain, string(key)
		if r.space == spaceChain {
			return r, r.parseChain(codec)
		}
		return r, r.parseValue(codec)
	case spaceRecord:
		return r, r.parseRecord(codec, p.Key)
	case spaceTile, spaceCheckpoint, spaceMark:
		return r, r.parseLog(codec, p.Key)
	case spaceState:
		r.key = string(p.Key[1:])
		s, err := journal.CheckTaken(codec, r.key, p.Value)
		if err != nil || r.key == "" {
			return r, invalidf("the state of a journal makes no sense")
		}
		r.done = s.Done
		return r, nil
	}
	return r, invalidf("a pair of another kind")
}

// unusable is what is wrong with a pair, in words about the backup: the errors of
// requests and of the store that it is made of are none of who restores it.
func unusable(err error) error {
	text := err.Error()
	for _, other := range []error{ErrInvalid, ErrDamaged} {
		text = strings.ReplaceAll(text, other.Error()+": ", "")
	}
	return fmt.Errorf("%w: %s", ErrBackup, text)
}

func (r *restorable) parseValue(codec *audit.Codec) error {
	revision, head, value, err := splitData(r.stored)
	if err != nil {
		return err
	}
	if err := codec.Unmarshal(head, &r.meta); err != nil {
		return invalidf("what is known of %s/%s makes no sense", r.domain, r.key)
	}
	m := &r.meta
	if m.Revision != revision || revision == 0 || revision > maxRevision || m.Size != len(value) ||
		len(value) > maxValue ||
		!bytes.Equal(m.Sum, sumOf(r.domain, r.key, revision, value)) {
		return invalidf("the value of %s/%s is not the one that was stored", r.domain, r.key)
	}
	r.value = value
	return m.Origin.check()
}

// maxRevision bounds what a backup may claim, so that there are always more.
const maxRevision = 1 << 62

func (r *restorable) parseChain(codec *audit.Codec) error {
	var err error
	if r.chain, err = decodeChain(codec, r.stored); err != nil {
		return invalidf("the chain of %s/%s makes no sense", r.domain, r.key)
	}
	for _, s := range r.chain.Steps {
		if s.Revision > maxRevision {
			return invalidf("the chain of %s/%s makes no sense", r.domain, r.key)
		}
		if err := s.Origin.check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *restorable) parseRecord(codec *audit.Codec, key []byte) error {
	rec, err := codec.Decode(r.stored)
	if err != nil {
		return invalidf("a record of the log: %v", err)
	}
	if !bytes.Equal(key, keyRecord(rec.Seq)) || rec.Seq == 0 || len(rec.Head.RunID) > 1024 || len(rec.Head.Agent) > 1024 {
		return invalidf("record %d of the log is in no place", rec.Seq)
	}
	r.record = rec
	return nil
}

// A restoreRequest is a stage of a restore.
type restoreRequest struct {
	Stage   stage  `cbor:"1,keyasint"`
	Replace bool   `cbor:"2,keyasint,omitempty"` // what is there may go
	Pairs   []pair `cbor:"3,keyasint,omitempty"` // to be restored
}

type restoreAnswer struct {
	LogKept bool `cbor:"1,keyasint,omitempty"` // the log that is there stays
}

func (*restoreRequest) op() opcode { return opRestore }

// do does one stage. Nothing else is written meanwhile.
func (q *restoreRequest) do(ctx context.Context, e *engine) (*restoreAnswer, error) {
	select {
	case e.ingesting <- struct{}{}:
		defer func() { <-e.ingesting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	defer e.reads.changed()
	e.edge, e.lastSealed = nil, Head{}
	e.removed, e.inspected = 0, false
	state, under, err := e.restoring()
	switch {
	case err != nil:
		return nil, err
	case q.Stage == restoreBegin:
		return e.beginRestore(state, under, q.Replace)
	case !under:
		return nil, invalidf("no restore is under way")
	case q.Stage == restorePage:
		err := inParts(e.db, q.Pairs, func(txn *badger.Txn, pairs []pair) error { return e.restorePairs(txn, state, pairs) })
		return &restoreAnswer{}, err
	case q.Stage == restoreEnd:
		err := e.update(func(txn *badger.Txn) error {
			return errors.Join(txn.Delete(keyRestore()), txn.Set(keyIndex(), []byte(e.opt.indexVersion())), boundMarks(txn))
		})
		if err == nil {
			err = e.migrate() // an older store's own log may be there still
		}
		if err == nil {
			e.shut.Store(false)
		}
		return &restoreAnswer{}, err
	}
	return nil, invalidf("a restore has no stage %d", q.Stage)
}

// restoring reads what the store remembers of a restore.
func (e *engine) restoring() (s restoring, under bool, err error) {
	err = e.db.View(func(txn *badger.Txn) error {
		p, err := get(txn, keyRestore())
		if err != nil || p == nil {
			return err
		}
		under = true
		return e.codec.Unmarshal(p, &s)
	})
	return s, under, err
}

// beginRestore empties the store, unless it has values that may not go. One that
// was interrupted begins again from nothing.
func (e *engine) beginRestore(s restoring, again, replace bool) (*restoreAnswer, error) {
	if !again {
		var values bool
		err := e.db.View(func(txn *badger.Txn) (err error) {
			if s.Shift, err = getNumber(txn, keyRev()); err != nil {
				return err
			}
			seq, err := getNumber(txn, keySeq())
			s.LogKept = seq > 0
			values = !isEmpty(txn, spaceMeta)
			return err
		})
		if err != nil {
			return nil, err
		}
		if values && !replace {
			return nil, fmt.Errorf("%w: it has values", ErrNotEmpty)
		}
	}
	p, err := e.codec.Marshal(s)
	if err == nil {
		err = e.update(func(txn *badger.Txn) error { return txn.Set(keyRestore(), p) })
	}
	if err != nil {
		return nil, err
	}
	e.shut.Store(true)
	e.snapshots.endAll()
	e.walks.endAll()
	spaces := []byte{spaceMeta, spaceData, spaceChain, spaceDoc, spaceIndex, spaceTally}
	if !s.LogKept {
		spaces = append(spaces, spaceRecord, spaceRun, spaceAgent, spaceOther, spaceState, spaceOpen, spaceTile,
			spaceCheckpoint, spaceMark)
		if err := e.update(forgetLog); err != nil {
			return nil, err
		}
	}
	return &restoreAnswer{LogKept: s.LogKept}, e.drop(spaces...)
}

// restorePairs restores pairs within one transaction.
func (e *engine) restorePairs(txn *badger.Txn, s restoring, pairs []pair) error {
	g := &regrowth{engine: e, txn: txn}
	for _, p := range pairs {
		r, err := parsePair(e.codec, p)
		if err != nil {
			return err
		}
		switch {
		case r.space == spaceData:
			err = e.restoreValue(txn, s, &r)
		case r.space == spaceChain:
			err = e.restoreChain(txn, s, &r)
		case s.LogKept:
		case r.space == spaceState:
			err = setState(txn, r.key, slices.Clone(r.stored), r.done)
		case r.space == spaceRecord:
			err = g.record(&r)
		case r.space == spaceTile:
			err = g.leaves(p.Key, r.stored)
		case r.space == spaceMark:
			err = g.mark(tailNumber(p.Key), r.stored)
		case r.space == spaceCheckpoint:
			err = txn.Set(slices.Clone(p.Key), slices.Clone(r.stored))
		}
		if err != nil {
			return err
		}
	}
	return g.end()
}

// forgetLog takes away what is known of a log that is dropped.
func forgetLog(txn *badger.Txn) error {
	return errors.Join(txn.Delete(keySeq()), txn.Delete(keyHead()), txn.Delete(keyPruned()), txn.Delete(keyPruning()),
		txn.Set(keyOwed(), []byte{}))
}

func (e *engine) restoreValue(txn *badger.Txn, s restoring, r *restorable) error {
	m := r.meta
	m.Revision += s.Shift
	m.Origin.Tenant = e.opt.Tenant
	if was, err := e.meta(txn, r.domain, r.key); err == nil {
		if was.Revision != m.Revision {
			return invalidf("%s/%s is there twice", r.domain, r.key)
		}
		return nil // the page is asked for again
	} else if failureOf(err) != failNotExist {
		return err
	}
	m.Sum = sumOf(r.domain, r.key, m.Revision, r.value)
	head, err := e.codec.Marshal(m)
	if err != nil {
		return err
	}
	last, err := getNumber(txn, keyRev())
	if err == nil && m.Revision > last {
		err = txn.Set(keyRev(), number(nil, m.Revision))
	}
	if err != nil {
		return err
	}
	t, err := readTally(txn, r.domain)
	if err != nil {
		return err
	}
	d, err := e.document(r.domain, r.value)
	if err != nil {
		return err
	}
	t.add(d, len(r.value))
	return errors.Join(
		txn.Set(keyMeta(r.domain, r.key), head),
		txn.Set(keyData(r.domain, r.key), joinData(m.Revision, head, r.value, d.plain, m.Origin.Label == Trusted)),
		txn.Set(keyTally(r.domain), t.encode()),
		e.addDoc(txn, r.domain, r.key, m.Revision, d),
	)
}

func (e *engine) restoreChain(txn *badger.Txn, s restoring, r *restorable) error {
	most := uint64(0)
	for i := range r.chain.Steps {
		r.chain.Steps[i].Revision += s.Shift
		most = max(most, r.chain.Steps[i].Revision)
	}
	p, err := encodeChain(e.codec, r.chain)
	if err != nil {
		return err
	}
	last, err := getNumber(txn, keyRev())
	if err == nil && most > last {
		err = txn.Set(keyRev(), number(nil, most))
	}
	return errors.Join(err, txn.Set(keyChain(r.domain, r.key), p))
}

func isEmpty(txn *badger.Txn, space byte) bool {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{space}})
	defer it.Close()
	it.Rewind()
	return !it.Valid()
}
