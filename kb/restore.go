package kb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/log"
	"runloop.dev/rlp/kb/values"
	"runloop.dev/rlp/kb/wire"
)

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

// checkPair checks a pair of a backup. It trusts nothing.
func checkPair(codec *audit.Codec, p pair) error {
	if is, err := values.IsPair(codec, p.Key, p.Value); is {
		return err
	}
	if is, err := log.IsPair(codec, p.Key, p.Value); is {
		return err
	}
	return wire.Invalidf("a pair of another kind")
}

// unusable is what is wrong with a pair, in words about the backup: the errors of
// requests and of the store that it is made of are none of who restores it.
func unusable(err error) error {
	text := err.Error()
	for _, other := range []error{wire.ErrInvalid, wire.ErrDamaged} {
		text = strings.ReplaceAll(text, other.Error()+": ", "")
	}
	return fmt.Errorf("%w: %s", ErrBackup, text)
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

func (*restoreRequest) Op() wire.Opcode { return wire.OpRestore }

// Do does one stage. Nothing else is written meanwhile.
func (q *restoreRequest) Do(ctx context.Context, e *engine) (*restoreAnswer, error) {
	release, err := e.log.Rewrite(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	defer e.values.Rewrite()()
	state, under, err := e.restoring()
	switch {
	case err != nil:
		return nil, err
	case q.Stage == restoreBegin:
		return e.beginRestore(state, under, q.Replace)
	case !under:
		return nil, wire.Invalidf("no restore is under way")
	case q.Stage == restorePage:
		err := db.InParts(e.db, q.Pairs, func(txn *badger.Txn, pairs []pair) error {
			return e.restorePairs(txn, state, pairs)
		})
		return &restoreAnswer{}, err
	case q.Stage == restoreEnd:
		err := e.db.Update(func(txn *badger.Txn) error {
			return errors.Join(txn.Delete(keyRestore()), e.values.SetIndexed(txn), log.BoundMarks(txn))
		})
		if err == nil {
			err = e.migrate() // an older store's own log may be there still
		}
		if err == nil {
			e.shut.Store(false)
		}
		return &restoreAnswer{}, err
	}
	return nil, wire.Invalidf("a restore has no stage %d", q.Stage)
}

// restoring reads what the store remembers of a restore.
func (e *engine) restoring() (s restoring, under bool, err error) {
	err = e.db.View(func(txn *badger.Txn) error {
		p, err := db.Get(txn, keyRestore())
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
		var any bool
		err := e.db.View(func(txn *badger.Txn) (err error) {
			if s.Shift, err = values.LastRevision(txn); err != nil {
				return err
			}
			last, err := log.LastRecord(txn)
			s.LogKept = last > 0
			any = values.Any(txn)
			return err
		})
		if err != nil {
			return nil, err
		}
		if any && !replace {
			return nil, fmt.Errorf("%w: it has values", wire.ErrNotEmpty)
		}
	}
	p, err := e.codec.Marshal(s)
	if err == nil {
		err = e.db.Update(func(txn *badger.Txn) error { return txn.Set(keyRestore(), p) })
	}
	if err != nil {
		return nil, err
	}
	e.shut.Store(true)
	e.snapshots.EndAll()
	spaces := slices.Clone(values.Spaces)
	if !s.LogKept {
		spaces = append(spaces, log.Spaces...)
		if err := e.db.Update(log.Forget); err != nil {
			return nil, err
		}
	}
	return &restoreAnswer{LogKept: s.LogKept}, e.db.Drop(spaces...)
}

// restorePairs restores pairs within one transaction.
func (e *engine) restorePairs(txn *badger.Txn, s restoring, pairs []pair) error {
	g := e.log.Regrow(txn)
	for _, p := range pairs {
		is, err := e.values.RestorePair(txn, s.Shift, p.Key, p.Value)
		switch {
		case err != nil || is:
		case s.LogKept:
			err = checkPair(e.codec, p)
		default:
			err = g.Pair(p.Key, p.Value)
		}
		if err != nil {
			return err
		}
	}
	return g.End()
}

// ErrBackup says that what should be restored is no backup, or not a whole one.
var ErrBackup = errors.New("not a usable backup")
