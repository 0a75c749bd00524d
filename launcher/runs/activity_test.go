package runs

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
)

// noon is when the tests look.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// A memoryLog is the log of a few runs, which notes how much was asked of it.
type memoryLog struct {
	records []audit.Record
	runs    []kb.RunSummary // the newest first
	after   uint64
	limit   int
}

func (l *memoryLog) Head(context.Context) (kb.Head, error) {
	return kb.Head{Size: uint64(len(l.records))}, nil
}

func (l *memoryLog) Audit(_ context.Context, f kb.Filter) iter.Seq2[audit.Record, error] {
	l.after = f.After
	return func(yield func(audit.Record, error) bool) {
		for _, r := range l.records {
			if f.Match(&r) && !yield(r, nil) {
				return
			}
		}
	}
}

func (l *memoryLog) Runs(_ context.Context, q kb.RunQuery) iter.Seq2[kb.RunSummary, error] {
	l.limit = q.Limit
	return func(yield func(kb.RunSummary, error) bool) {
		for i, s := range l.runs {
			if q.Limit > 0 && i == q.Limit || !yield(s, nil) {
				return
			}
		}
	}
}

// add has a run of an agent begin and end, and make decisions between.
func (l *memoryLog) add(agent string, began time.Time, outcome string, decisions ...audit.DecisionRecord) string {
	id := fmt.Sprintf("0198d2c4-7f1e-7000-8000-%012d", len(l.runs))
	s := kb.RunSummary{
		RunID: id, Agent: agent, BeganMS: began.UnixMilli(), EndedMS: began.Add(time.Second).UnixMilli(), Outcome: outcome,
		End: audit.KindRunComplete,
	}
	put := func(r audit.Record) {
		r.Seq, r.Time, r.Head = uint64(len(l.records))+1, began, audit.Head{RunID: id, Agent: agent}
		l.records = append(l.records, r)
	}
	put(audit.Record{Event: &audit.Event{
		Kind: audit.KindRunStart, Effective: []string{"fs:read:/in", "fs:write:/in", "fs:write:/out", "kb:write:notes"},
	}})
	for _, d := range decisions {
		if put(audit.Record{Decision: &d}); d.Deny {
			s.Denied++
		} else {
			s.Allowed++
		}
	}
	put(audit.Record{Event: &audit.Event{
		Kind: audit.KindRunComplete, Outcome: outcome, Usage: map[string]int64{"allowed": s.Allowed},
	}})
	l.runs = slices.Insert(l.runs, 0, s)
	return id
}

func reads(path string) audit.DecisionRecord {
	return audit.DecisionRecord{Cap: "fs.read", Target: path}
}

func refusedRead(path string) audit.DecisionRecord {
	return audit.DecisionRecord{
		Cap: "fs.read", Target: path, Deny: true, Severity: audit.Warn, Reason: "path_not_permitted",
	}
}

func look(t *testing.T, l *memoryLog, runs, records int) *Activity {
	t.Helper()
	a, err := Look(t.Context(), l, Window{
		Since: noon.Add(-24 * time.Hour), Now: noon, Parts: 24, MostRuns: runs, MostRecords: records,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// What runs came to is counted by when they began, by agent and by what was denied.
func TestActivity(t *testing.T) {
	l := &memoryLog{}
	l.add("old", noon.Add(-25*time.Hour), "ok", refusedRead("/etc/shadow"))
	l.add("notes", noon.Add(-90*time.Minute), "ok", reads("/in/a"), refusedRead("/etc/passwd"), refusedRead("/etc/passwd"))
	l.add("notes", noon.Add(-30*time.Minute), "timeout", refusedRead("/etc/passwd"), refusedRead("/x"))
	last := l.add("mail", noon.Add(-10*time.Minute), "ok", refusedRead("/etc/passwd"))
	a := look(t, l, 100, 1000)
	if s := a.Steps[22]; s.OK != 1 || s.Bad != 0 || s.Denied != 2 || !s.From.Equal(noon.Add(-2*time.Hour)) {
		t.Errorf("the hour before the last is %+v", s)
	}
	if s := a.Steps[23]; s.OK != 1 || s.Bad != 1 || s.Denied != 3 {
		t.Errorf("the last hour is %+v", s)
	}
	if len(a.Agents) != 2 || a.Agents[0].Agent != "notes" || a.Agents[0].Bad != 1 || a.Agents[0].Typical != 1000 ||
		a.Agents[0].Recent[1].State != Failed {
		t.Errorf("the agents are %+v", a.Agents)
	}
	if len(a.Top) != 3 || a.Top[0].Count != 3 || a.Top[0].Runs != 2 || a.Top[0].Agent != "notes" {
		t.Fatalf("what was denied is %+v", a.Top)
	}
	if of := a.Top[1]; of.Run != last || l.records[of.Seq-1].Decision == nil {
		t.Errorf("the newest of what was denied once is %+v", of)
	}
	if !a.Whole() || !a.Ever || a.Looked != 3 {
		t.Errorf("whole %t, ever %t, %d runs", a.Whole(), a.Ever, a.Looked)
	}
}

// However long a log is, no more of it is asked for than the window allows, and the
// answer says since when it is whole.
func TestActivityIsBounded(t *testing.T) {
	l := &memoryLog{}
	for i := range 100 {
		l.add("notes", noon.Add(time.Duration(i-100)*time.Minute), "ok", refusedRead("/x"))
	}
	a := look(t, l, 10, 30)
	if l.limit != 11 || l.after != 270 || a.Looked != 10 || a.Records != 30 {
		t.Errorf("asked for %d runs and behind record %d; looked at %d and %d", l.limit, l.after, a.Looked, a.Records)
	}
	if ten := noon.Add(-10 * time.Minute); a.Whole() || !a.RunsAt.Equal(ten) || !a.SeenAt.Equal(ten) {
		t.Errorf("whole %t, runs since %s, records since %s", a.Whole(), a.RunsAt, a.SeenAt)
	}
	if a = look(t, l, 100, 300); !a.Whole() { // control: there is not more
		t.Errorf("not whole: runs since %s, records since %s", a.RunsAt, a.SeenAt)
	}
}

// A grant is unused when enough runs left it, each of whose allowed calls is in the log.
func TestUnusedGrants(t *testing.T) {
	l := &memoryLog{}
	for range enoughRuns {
		stored := audit.DecisionRecord{Cap: "kb.write", Target: "notes/x"}
		l.add("notes", noon.Add(-time.Hour), "ok", reads("/in/a"), stored)
	}
	l.add("new", noon.Add(-time.Hour), "ok", reads("/in/a"))
	for range enoughRuns { // as where allowed calls are not stored
		l.add("quiet", noon.Add(-time.Hour), "ok", reads("/in/a"))
		last := &l.records[len(l.records)-1]
		last.Event.Usage["allowed"] = 2
	}
	a := look(t, l, 100, 1000)
	if u := a.Unused; len(u) != 1 || u[0].Agent != "notes" || u[0].Runs != enoughRuns ||
		!slices.Equal(u[0].Grants, []string{"fs:write:/out"}) {
		t.Errorf("unused is %+v", a.Unused)
	}
}
