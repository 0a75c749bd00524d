package log

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/wire"
)

// Record puts what was found wrong with the log into the log, once, so that it
// stays told when it can be seen no more.
func (s *Client) Record(ctx context.Context, finding string) error {
	if _, err := wire.Ask(ctx, s.asker, &recordRequest{finding}); err != nil {
		return fmt.Errorf("recording what was found: %w", err)
	}
	return nil
}

// A recordRequest records what was found wrong with the log.
type recordRequest struct {
	Finding string `cbor:"1,keyasint"`
}

func (*recordRequest) Op() wire.Opcode { return wire.OpRecord }

func (q *recordRequest) Do(ctx context.Context, l *Log) (*nothing, error) {
	if err := l.takeIngesting(ctx); err != nil {
		return nil, err
	}
	defer func() { <-l.ingesting }()
	return &nothing{}, l.recordFinding(ctx, q.Finding, nil)
}

// maxFinding bounds the text of a finding, in bytes.
const maxFinding = 2 << 10

// recordFinding puts a finding into the log unless it is there, and removes the
// keys in drop with it. The caller holds ingesting.
func (l *Log) recordFinding(ctx context.Context, text string, drop [][]byte) error {
	text = strings.ToValidUTF8(text[:min(len(text), maxFinding)], "")
	sum := sha256.Sum256([]byte(text))
	known := false
	err := l.db.View(func(txn *badger.Txn) error {
		p, err := db.Get(txn, keyFinding(sum[:]))
		known = p != nil
		return err
	})
	if err != nil || known && len(drop) == 0 {
		return err
	}
	run, err := ident.NewRun()
	if err != nil {
		return err
	}
	b := &intake{Log: l, ctx: ctx, run: run.String(), drop: drop, mark: keyFinding(sum[:])}
	head := audit.Head{RunID: b.run, Tenant: l.opt.Tenant}
	b.add(&audit.Record{Time: l.opt.Now().UTC(), Head: head, Kept: true, RunSeq: 1, Event: &audit.Event{
		Kind: audit.KindRunFailed, Severity: audit.Error, Outcome: reasonFault, ExitCode: 1, Reason: reasonFault,
		Message: text,
	}})
	return b.flush(journalState{State: journal.State{Head: head}, Done: true})
}

// damaged reports what is wrong with the journal of a run. That it lost something
// is recorded where the end of the run does not say it; what cannot be read now
// may be read later, and what is another tenant's is no loss of this one.
func (l *Log) damaged(ctx context.Context, run string, why error, done *Ingested) error {
	done.Damaged = append(done.Damaged, why.Error())
	if !errors.Is(why, journal.ErrDamaged) {
		return nil
	}
	var end *audit.Record
	err := l.db.View(func(txn *badger.Txn) (err error) {
		end, err = l.lastRecord(txn, run)
		return err
	})
	if err != nil || end != nil && end.Event != nil && end.Event.Reason == reasonDamaged {
		return err
	}
	return l.recordFinding(ctx, why.Error(), nil)
}

// inspect looks, before the log is made longer or signed the first time after it was
// opened, for what would not be seen any more then: records behind its end, which
// would be overwritten, and that the checkpoint of the end of a run is gone, which the
// next one covers. The caller holds ingesting.
func (l *Log) inspect(ctx context.Context) error {
	if l.inspected {
		return nil
	}
	var size, end uint64
	var stray strays
	err := l.db.View(func(txn *badger.Txn) error {
		head, err := storedHead(txn)
		if err != nil {
			return err
		}
		if end, err = unsealedEnd(l, txn); err != nil {
			return err
		}
		size = head.Size
		return stray.look(txn, size)
	})
	if err != nil {
		return err
	}
	l.inspected = true // for the records of it
	if stray.n > 0 {
		err = l.recordFinding(ctx, stray.text(size), stray.keys)
	}
	if err == nil && end > 0 && end <= size {
		err = l.recordFinding(ctx, fmt.Sprintf("record %d ended a run, and the checkpoint that was made then is gone: it "+
			"was removed before another one was signed", end), nil)
	}
	l.inspected = err == nil && stray.n < intakeItems
	return err
}

// begun remembers that the log was begun, which is before its key is made. One
// that begins although there is a key is not the first one. The caller holds
// ingesting.
func (l *Log) begun(ctx context.Context) error {
	known, size := false, uint64(0)
	err := l.db.View(func(txn *badger.Txn) error {
		p, err := db.Get(txn, keyBegun())
		if err != nil {
			return err
		}
		known = p != nil
		head, err := storedHead(txn)
		size = head.Size
		return err
	})
	if err != nil || known {
		return err
	}
	if size == 0 && l.opt.Signed != nil && l.opt.Signed() {
		const text = "there is a key that signed a log, and no log: it was removed, and this one was begun in its place"
		if err := l.recordFinding(ctx, text, nil); err != nil {
			return err
		}
	}
	return l.db.Update(func(txn *badger.Txn) error { return txn.Set(keyBegun(), []byte{}) })
}

// journalKey reports whether journals can be read by the key that the log knows
// them by. One that is not there is told until it is back; that it was exchanged,
// or made anew by a launch, is recorded. The caller holds ingesting.
func (l *Log) journalKey(ctx context.Context, done *Ingested) (bool, error) {
	var known []byte
	err := l.db.View(func(txn *badger.Txn) (err error) {
		known, err = db.Get(txn, keyJournal())
		return err
	})
	if err != nil {
		return false, err
	}
	id, err := journal.KeyID(l.opt.Journal)
	switch {
	case err == nil && bytes.Equal(id, known), errors.Is(err, fs.ErrNotExist) && known == nil:
		return true, nil
	case err != nil:
		done.Damaged = append(done.Damaged, err.Error())
		return false, nil
	}
	if known != nil {
		text := fmt.Sprintf("the key of the journals is not the one that was there (%x, now %x): it was removed or "+
			"exchanged, and what waited in journals can no longer be read",
			known[:4], id[:4])
		done.Damaged = append(done.Damaged, text)
		if err := l.recordFinding(ctx, text, nil); err != nil {
			return false, err
		}
	}
	return true, l.db.Update(func(txn *badger.Txn) error { return txn.Set(keyJournal(), id) })
}

// strays are records behind the end of the log: rlp has made none of them.
type strays struct {
	n     int
	first uint64
	sum   [sha256.Size]byte // of the first
	keys  [][]byte          // of them, and of what leads to them
}

// look finds the strays of a log of size records.
func (s *strays) look(txn *badger.Txn, size uint64) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceRecord}})
	defer it.Close()
	var x indexWalk
	var g audit.Glance
	for it.Seek(keyRecord(size + 1)); it.Valid() && s.n < intakeItems; it.Next() {
		s.keys = append(s.keys, it.Item().KeyCopy(nil))
		err := it.Item().Value(func(p []byte) error {
			if s.n++; s.n == 1 {
				s.first, s.sum = db.TailNumber(it.Item().Key()), sha256.Sum256(p)
			}
			if g.Read(p) == nil && g.Seq == db.TailNumber(it.Item().Key()) {
				x.entries(&g, func(_ int, entry []byte, key int) { s.keys = append(s.keys, append([]byte(nil), entry[:key]...)) })
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%w: %w", wire.ErrDamaged, err)
		}
	}
	return nil
}

func (s *strays) text(size uint64) string {
	return fmt.Sprintf("record %d (SHA-256 %x), the first of %d, was behind the end of the log, which had %d: rlp has "+
		"not put it there, and has removed it", s.first, s.sum, s.n, size)
}
