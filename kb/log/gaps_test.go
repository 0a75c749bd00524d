package log

import (
	"errors"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/wire"
)

// A record that is gone from the log, at whatever place, is an error that says which.
func TestMissingRecord(t *testing.T) {
	for _, gone := range []uint64{1, 5, 10} {
		e := openLog(t, newPlace(t))
		j, err := journal.Create(journal.Options{Dir: e.log.opt.Journal, Head: audit.Head{
			RunID: "run1", Tenant: "default",
			Agent: "a",
		}})
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := j.Decide(&audit.Decision{Keep: true, Deny: true}); err != nil {
				t.Fatal(err)
			}
		}
		defer j.Close()
		if _, err := wire.Ask(t.Context(), e, &ingestRequest{}); err != nil {
			t.Fatal(err)
		}
		page := func(f Filter) error {
			_, err := wire.Ask(t.Context(), e, &pageRequest{From: 1, UpTo: 10, Filter: f})
			return err
		}
		queries := []func() error{
			func() error { return page(Filter{}) },
			func() error { return page(Filter{Run: "run1"}) },
			func() error { return page(Filter{Agent: "a"}) },
			func() error {
				_, err := wire.Ask(t.Context(), e, &seekRequest{Filter: Filter{Limit: 10, Decision: "deny"}})
				return err
			},
		}
		for _, q := range queries {
			if err := q(); err != nil { // the control
				t.Fatal(err)
			}
		}
		if err := e.db.Update(func(txn *badger.Txn) error { return txn.Delete(keyRecord(gone)) }); err != nil {
			t.Fatal(err)
		}
		for i, q := range queries {
			if err := q(); !errors.Is(err, wire.ErrDamaged) {
				t.Errorf("record %d is gone, query %d: %v", gone, i, err)
			}
		}
	}
}

// A journal that carries on after a gap in its numbers is refused.
func TestGapIsRefused(t *testing.T) {
	e := openLog(t, newPlace(t))
	j, err := journal.Create(journal.Options{Dir: e.log.opt.Journal, Head: audit.Head{
		RunID: "run1", Tenant: "default",
		Agent: "a",
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := j.Decide(&audit.Decision{Keep: true}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := wire.Ask(t.Context(), e, &ingestRequest{}); err != nil {
		t.Fatal(err)
	}
	s, err := e.log.journalState("run1")
	if err != nil || s.State.RunSeq != 4 {
		t.Fatal(s, err)
	}
	s.State.RunSeq = 2 // as if two records had been lost on the way in
	b := &intake{Log: e.log, ctx: t.Context(), run: "run1"}
	if err := b.flush(s); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Decide(&audit.Decision{Keep: true, Target: "after"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := wire.Ask(t.Context(), e, &ingestRequest{})
	if err != nil || len(r.Damaged) != 1 || !strings.Contains(r.Damaged[0], "record 5 is where record 3 belongs") {
		t.Fatalf("%+v %v", r, err)
	}
}
