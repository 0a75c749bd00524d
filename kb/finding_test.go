package kb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// findings are what the log says is missing of it, or was wrong with it, the
// first of which must say each of words.
func findings(t *testing.T, s *Store, n int, words ...string) {
	t.Helper()
	ours := LogCheck{Open: newTestKey("ours").open}
	for range 2 { // it stays told
		if _, err := s.Ingest(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := s.VerifyLog(t.Context(), ours)
		if err != nil || r.Found != n || len(r.Findings) != n {
			t.Fatalf("%+v, %v; want %d findings", r, err, n)
		}
		for _, w := range words {
			if !strings.Contains(r.Findings[0].Message, w) {
				t.Errorf("%q does not say %q", r.Findings[0].Message, w)
			}
		}
	}
}

// A journal that lost a record leaves a finding, which the runs that follow do
// not cover up, and which is told of the run alone, too.
func TestADamagedJournalStaysTold(t *testing.T) {
	home := t.TempDir()
	s := openSealed(t, Options{Home: home})
	record(t, home, "whole", 9)
	findings(t, s, 0) // control
	record(t, home, "damaged", 9)
	dir, err := JournalDir(home, "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.ReadFile(filepath.Join(dir, "damaged"))
	if err != nil {
		t.Fatal(err)
	}
	p[len(bytes.TrimRight(p, "\x00"))/2] ^= 4
	if err := os.WriteFile(filepath.Join(dir, "damaged"), p, 0o600); err != nil {
		t.Fatal(err)
	}
	findings(t, s, 1, "frame")
	record(t, home, "later", 9)
	findings(t, s, 1, "frame")
	for run, n := range map[string]int{"damaged": 1, "later": 0} {
		if r, err := s.VerifyLog(t.Context(), LogCheck{Run: run}); err != nil || r.Found != n {
			t.Errorf("run %s: %+v, %v", run, r, err)
		}
	}
}

// What is wrong and no end of a run says is a record of its own, once.
func TestADamageThatNoEndSaysIsRecorded(t *testing.T) {
	home := t.TempDir()
	s := openSealed(t, Options{Home: home})
	dir, err := JournalDir(home, "")
	if err != nil {
		t.Fatal(err)
	}
	record(t, home, "whole", 2)
	for _, name := range []string{".group-one", ".group-two"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)); err != nil {
			t.Fatal(err)
		}
	}
	findings(t, s, 2, "named like a group file")
	for range 2 {
		if err := s.Record(t.Context(), "seen by somebody"); err != nil {
			t.Fatal(err)
		}
	}
	findings(t, s, 3, "named like a group file")
}

// A record that somebody puts behind the end of the log is found by whoever makes
// the log longer, and not merely overwritten.
func TestARecordBehindTheEndIsFound(t *testing.T) {
	o := sealed(Options{Home: t.TempDir()})
	record(t, o.Home, "first", 5)
	if _, err := IngestBacklog(t.Context(), o, time.Minute); err != nil {
		t.Fatal(err)
	}
	attack(t, o, func(a *adversary) {
		recs := a.records()
		for _, at := range []uint64{7, 8} {
			rec := *recs[3]
			rec.Seq, rec.RunSeq, rec.Head.RunID = at, at, "forged"
			p, err := a.codec.Encode(&rec)
			if err != nil {
				a.Fatal(err)
			}
			a.update(func(txn *badger.Txn) error { return setRecord(txn, &rec, p) })
		}
	})
	if _, err := verified(t, copied(t, o), LogCheck{}); err == nil { // control
		t.Error("before an intake the log verifies")
	}
	record(t, o.Home, "second", 5)
	s := openSealed(t, o)
	findings(t, s, 1, "record 7", "behind the end", "first of 2", "had 6")
	for r, err := range s.Audit(t.Context(), Filter{}) {
		if err != nil || r.Head.RunID == "forged" {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// A log that begins although there is a key that signed one says so. One whose
// key is made after it began does not.
func TestALogThatWasRemovedIsToldByItsKey(t *testing.T) {
	key := false
	o := sealed(Options{Home: t.TempDir(), Signed: func() bool { return key }})
	take := func(run string) {
		record(t, o.Home, run, 3)
		if _, err := IngestBacklog(t.Context(), o, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := IngestBacklog(t.Context(), o, time.Minute); err != nil {
		t.Fatal(err)
	}
	key = true // made by rlp audit key, which begins the log
	take("first")
	if r, err := verified(t, o, LogCheck{}); err != nil || r.Found != 0 {
		t.Fatalf("control: %+v, %v", r, err)
	}
	if err := os.RemoveAll(filepath.Join(o.Home, "kb")); err != nil {
		t.Fatal(err)
	}
	take("second")
	take("third")
	r, err := verified(t, o, LogCheck{})
	if err != nil || r.Found != 1 || r.Findings[0].Seq != 1 || !strings.Contains(r.Findings[0].Message, "no log") {
		t.Errorf("%+v, %v", r, err)
	}
}

// A run whose process died before it recorded its beginning has an end that says
// so, and is counted.
func TestAnEndWithoutABeginning(t *testing.T) {
	home := t.TempDir()
	s := openSealed(t, Options{Home: home})
	if err := begun(t, home, "bare", 0).Close(); err != nil {
		t.Fatal(err)
	}
	record(t, home, "whole", 2)
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := ends(t, s, "bare"); len(e) != 1 || !strings.Contains(e[0].Event.Message,
		"before it had recorded the beginning") {
		t.Errorf("%+v", e)
	}
	if r, err := s.VerifyLog(t.Context(), LogCheck{}); err != nil || r.Bare != 1 || r.Runs != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Outcomes says of each run how it ended, in the order in which it is asked.
func TestOutcomes(t *testing.T) {
	home := t.TempDir()
	s := openSealed(t, Options{Home: home})
	record(t, home, "ended", 2)
	begun(t, home, "open", 2)
	if err := begun(t, home, "killed", 2).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs := []string{"none", "ended", "open", "killed", "end"}
	want := []string{"", "ok", GoesOn, "killed", ""}
	for len(runs) < 2*askRuns {
		runs, want = append(runs, runs[:5]...), append(want, want[:5]...)
	}
	if got, err := s.Outcomes(context.Background(), runs); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got[:5], err)
	}
}

// A journal whose head cannot be read is no journal of a process that died: a
// journal has its head before it has its name.
func TestAJournalWithoutItsHeadIsDamaged(t *testing.T) {
	home := t.TempDir()
	s := openSealed(t, Options{Home: home})
	record(t, home, "first", 2)
	dir, err := JournalDir(home, "")
	if err != nil {
		t.Fatal(err)
	}
	// as a launch makes one where there is none
	if err := os.WriteFile(filepath.Join(dir, ".args_key"), bytes.Repeat([]byte{7}, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	findings(t, s, 1, "run first", "frame 1 ")
}

// A key of the journals that is gone is told until it is back; one that is another
// is told for good, though nothing waited that it could not read.
func TestTheKeyOfTheJournals(t *testing.T) {
	home := t.TempDir()
	s := openSealed(t, Options{Home: home})
	record(t, home, "first", 2)
	findings(t, s, 0) // control
	dir, err := JournalDir(home, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ".args_key")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := s.Ingest(t.Context()); err != nil || len(got.Damaged) != 1 || !strings.Contains(got.Damaged[0],
			"audit key") {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	findings(t, s, 0)
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Ingest(t.Context()); err != nil || len(got.Damaged) != 0 {
		t.Fatalf("control: brought back: %+v, %v", got, err)
	}
	for n := 1; n <= 2; n++ {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		record(t, home, fmt.Sprint("later", n), 2) // which makes one
		findings(t, s, n, "the key of the journals is not the one that was there")
	}
}
