package log

import (
	"fmt"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/logtest"
)

// Many journals are one commit with one checkpoint; each run is whole, numbers have
// no gap, and to take them in again changes nothing.
func TestManyJournalsAreOneCommit(t *testing.T) {
	o, seals := newPlace(t), 0
	o.Seal = func(uint64, [32]byte) ([]byte, error) {
		seals++
		return []byte("x"), nil
	}
	s := openLog(t, o)
	dir := logtest.Dir(o.home)
	const runs, each = 300, 3
	for i := range runs {
		j, err := journal.Create(journal.Options{Dir: dir, Head: audit.Head{
			RunID:  fmt.Sprintf("run%03d", i),
			Tenant: "default", Agent: "a",
		}})
		if err != nil {
			t.Fatal(err)
		}
		for range each - 1 {
			if _, err := j.Decide(&audit.Decision{Keep: true, Target: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		kind := audit.KindRunComplete
		if i%50 == 49 { // killed: the store gives it its end
			kind = audit.KindCallDone
		}
		if err := j.Event(&audit.Event{Kind: kind}); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const records = runs*each + runs/50
	for i, want := range []Ingested{{Records: records, Runs: runs}, {}} {
		got, err := s.Ingest(t.Context())
		if err != nil || got.Records != want.Records || got.Runs != want.Runs || len(got.Damaged) > 0 {
			t.Fatalf("%d: %+v, %v", i, got, err)
		}
	}
	if seals == 0 || seals > runs/10 {
		t.Errorf("%d checkpoints of %d runs", seals, runs)
	}
	next, of := uint64(1), map[string]uint64{}
	for r, err := range s.Audit(t.Context(), Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		of[r.Head.RunID]++
		if r.Seq != next || r.RunSeq != of[r.Head.RunID] {
			t.Fatalf("record %d of %s stands where %d belongs, as its number %d", r.Seq, r.Head.RunID, next, r.RunSeq)
		}
		next++
	}
	if next != records+1 || len(of) != runs {
		t.Errorf("%d records of %d runs", next-1, len(of))
	}
}
