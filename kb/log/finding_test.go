package log

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

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/kb/logtest"
)

// findings are what the log says is missing of it, or was wrong with it, the
// first of which must say each of words.
func findings(t *testing.T, s *testLog, n int, words ...string) {
	t.Helper()
	ours := Check{Open: newTestKey("ours").open}
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
	s := openLog(t, at(home))
	logtest.Record(t, home, "whole", 9)
	findings(t, s, 0) // control
	logtest.Record(t, home, "damaged", 9)
	dir := logtest.Dir(home)
	p, err := os.ReadFile(filepath.Join(dir, "damaged"))
	if err != nil {
		t.Fatal(err)
	}
	p[len(bytes.TrimRight(p, "\x00"))/2] ^= 4
	if err := os.WriteFile(filepath.Join(dir, "damaged"), p, 0o600); err != nil {
		t.Fatal(err)
	}
	findings(t, s, 1, "frame")
	logtest.Record(t, home, "later", 9)
	findings(t, s, 1, "frame")
	for run, n := range map[string]int{"damaged": 1, "later": 0} {
		if r, err := s.VerifyLog(t.Context(), Check{Run: run}); err != nil || r.Found != n {
			t.Errorf("run %s: %+v, %v", run, r, err)
		}
	}
}

// What is wrong and no end of a run says is a record of its own, once.
func TestADamageThatNoEndSaysIsRecorded(t *testing.T) {
	home := t.TempDir()
	s := openLog(t, at(home))
	dir := logtest.Dir(home)
	logtest.Record(t, home, "whole", 2)
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
	o := at(t.TempDir())
	logtest.Record(t, o.home, "first", 5)
	ingestAll(t, o)
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
	if _, err := verified(t, copied(t, o), Check{}); err == nil { // control
		t.Error("before an intake the log verifies")
	}
	logtest.Record(t, o.home, "second", 5)
	s := openLog(t, o)
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
	o := at(t.TempDir())
	o.Signed = func() bool { return key }
	take := func(run string) {
		logtest.Record(t, o.home, run, 3)
		ingestAll(t, o)
	}
	ingestAll(t, o)
	key = true // made by rlp audit key, which begins the log
	take("first")
	if r, err := verified(t, o, Check{}); err != nil || r.Found != 0 {
		t.Fatalf("control: %+v, %v", r, err)
	}
	if err := os.RemoveAll(filepath.Join(o.home, "kb")); err != nil {
		t.Fatal(err)
	}
	take("second")
	take("third")
	r, err := verified(t, o, Check{})
	if err != nil || r.Found != 1 || r.Findings[0].Seq != 1 || !strings.Contains(r.Findings[0].Message, "no log") {
		t.Errorf("%+v, %v", r, err)
	}
}

// A run whose process died before it recorded its beginning has an end that says
// so, and is counted.
func TestAnEndWithoutABeginning(t *testing.T) {
	home := t.TempDir()
	s := openLog(t, at(home))
	if err := logtest.Begin(t, home, "bare", 0).Close(); err != nil {
		t.Fatal(err)
	}
	logtest.Record(t, home, "whole", 2)
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := ends(t, s, "bare"); len(e) != 1 || !strings.Contains(e[0].Event.Message,
		"before it had recorded the beginning") {
		t.Errorf("%+v", e)
	}
	if r, err := s.VerifyLog(t.Context(), Check{}); err != nil || r.Bare != 1 || r.Runs != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Outcomes says of each run how it ended, in the order in which it is asked.
func TestOutcomes(t *testing.T) {
	home := t.TempDir()
	s := openLog(t, at(home))
	logtest.Record(t, home, "ended", 2)
	logtest.Begin(t, home, "open", 2)
	if err := logtest.Begin(t, home, "killed", 2).Close(); err != nil {
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
	s := openLog(t, at(home))
	logtest.Record(t, home, "first", 2)
	dir := logtest.Dir(home)
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
	s := openLog(t, at(home))
	logtest.Record(t, home, "first", 2)
	findings(t, s, 0) // control
	dir := logtest.Dir(home)
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
		logtest.Record(t, home, fmt.Sprint("later", n), 2) // which makes one
		findings(t, s, n, "the key of the journals is not the one that was there")
	}
}
