package kb_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
)

// runs collects what a store answers.
func runs(t testing.TB, s *kb.Store, q kb.RunQuery) (list []kb.RunSummary) {
	t.Helper()
	for r, err := range s.Runs(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// ran puts runs into a store: of two agents in turn, one of them refused, the
// newest still open.
func ran(t testing.TB, home string, n int) (ids []string) {
	t.Helper()
	for i := range n {
		id := fmt.Sprintf("0190b1d2-7c4e-7a55-8f00-%012d", i)
		ids = append(ids, id)
		j := newJournal(t, journalDir(t, home, ""), audit.Head{
			RunID: id, TraceID: "t", Tenant: kb.DefaultTenant,
			Agent: []string{"reader", "writer"}[i%2], BundleDigest: "b",
		})
		e := &audit.Event{Kind: audit.KindRunComplete, Outcome: "ok", Usage: map[string]int64{
			"allowed": int64(i),
			"denied":  2,
		}}
		if i == 1 {
			e = &audit.Event{Kind: audit.KindPolicyRejected, Outcome: "refused", ExitCode: 77, Message: "why"}
		}
		if err := j.Event(&audit.Event{Kind: audit.KindRunStart}); err != nil {
			t.Fatal(err)
		}
		if i == n-1 {
			continue
		}
		if err := j.Event(e); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// The runs come newest first, by pages, to the owner and to those who ask it.
func TestRuns(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	owner, client := openStore(t, home), openStore(t, home)
	const n = 700 // several answers
	ids := ran(t, home, n)
	if _, err := owner.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := list(t, owner, kb.Filter{})
	for name, s := range map[string]*kb.Store{"owner": owner, "client": client} {
		t.Run(name, func(t *testing.T) {
			got := runs(t, s, kb.RunQuery{})
			if len(got) != n {
				t.Fatalf("%d runs, want %d", len(got), n)
			}
			for i, r := range got {
				if r.RunID != ids[n-1-i] {
					t.Fatalf("run %d is %s, want %s", i, r.RunID, ids[n-1-i])
				}
			}
			check := func(r kb.RunSummary, want kb.RunSummary) {
				t.Helper()
				first := slices.IndexFunc(all, func(rec audit.Record) bool { return rec.Head.RunID == r.RunID })
				want.RunID, want.TraceID, want.BundleDigest = r.RunID, "t", "b"
				want.First, want.BeganMS = all[first].Seq, all[first].Time.UnixMilli()
				if want.End != "" {
					want.EndedMS = r.EndedMS
				}
				if r != want || want.End != "" && r.EndedMS < r.BeganMS {
					t.Errorf("got %+v, want %+v", r, want)
				}
			}
			check(got[0], kb.RunSummary{Agent: "writer", Records: 1})
			check(got[n-1], kb.RunSummary{Agent: "reader", Records: 2, End: audit.KindRunComplete, Outcome: "ok", Denied: 2})
			check(got[n-2], kb.RunSummary{
				Agent: "writer", Records: 2, End: audit.KindPolicyRejected, Outcome: "refused",
				ExitCode: 77, Message: "why",
			})
			of := runs(t, s, kb.RunQuery{Agent: "reader", Before: ids[10], Limit: 3})
			if len(of) != 3 || of[0].RunID != ids[8] || of[2].RunID != ids[4] {
				t.Errorf("three of an agent before one: %+v", of)
			}
			if none := runs(t, s, kb.RunQuery{Before: ids[0]}); len(none) != 0 {
				t.Errorf("before the first: %+v", none)
			}
			if some := runs(t, s, kb.RunQuery{Limit: 300}); len(some) != 300 {
				t.Errorf("a limit of 300 gives %d", len(some))
			}
		})
	}
}
