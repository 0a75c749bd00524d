package kb_test

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

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
)

func journalDir(t testing.TB, home, tenant string) string {
	t.Helper()
	dir, err := kb.JournalDir(home, tenant)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func newJournal(t testing.TB, dir string, h audit.Head) *journal.Journal {
	t.Helper()
	j, err := journal.Create(journal.Options{Dir: dir, Head: h})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// list collects what the log answers.
func list(t testing.TB, s *kb.Store, f kb.Filter) []audit.Record {
	t.Helper()
	var recs []audit.Record
	for rec, err := range s.Audit(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, rec)
	}
	return recs
}

func end(t testing.TB, j *journal.Journal) {
	t.Helper()
	if err := j.Event(&audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// The log is complete at any moment, while a run goes on and after it, asked
// by the owner or by a client, and asking twice changes nothing.
//
//rlp:holds R68 R72
func TestLogIsComplete(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	owner, client := openStore(t, home), openStore(t, home)
	j := newJournal(t, journalDir(t, home, ""), audit.Head{
		RunID: "run1", TraceID: "trace1", Tenant: "default",
		Agent: "writer",
	})
	d := decision(t, j)
	for i := 1; i <= 20; i++ {
		d.Deny = i%2 == 0 // denials, all alike, and what was allowed
		if _, err := j.Decide(&d); err != nil {
			t.Fatal(err)
		}
		loose := d
		loose.Keep = false // what the operator does not want stored
		if _, err := j.Decide(&loose); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*kb.Store{owner, client} {
			recs := list(t, s, kb.Filter{Run: "run1"})
			if len(recs) != i {
				t.Fatalf("after %d kept decisions the log has %d", i, len(recs))
			}
			if last := recs[i-1]; last.Seq != uint64(i) || last.RunSeq != uint64(i) || last.Denied() != d.Deny ||
				last.Head.TraceID != "trace1" {
				t.Fatalf("record %d is %+v", i, last)
			}
		}
	}
	end(t, j)
	recs := list(t, client, kb.Filter{})
	if len(recs) != 21 || recs[20].Kind() != audit.KindRunComplete {
		t.Fatalf("%d records after the end, the last is %s", len(recs), recs[len(recs)-1].Kind())
	}
}

// A journal that is in the log is deleted, once whoever follows journals has
// had time to see it.
func TestJournalIsDeleted(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	now := time.Now()
	s, err := kb.Open(t.Context(), kb.Options{Home: home, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	j := writeRun(t, journalDir(t, home, ""), "run1", 10)
	if err := j.Event(&audit.Event{Kind: audit.KindRunComplete}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	backlog := func(want int, when string) {
		t.Helper()
		if got := list(t, s, kb.Filter{}); len(got) != 11 {
			t.Errorf("%s the log has %d records", when, len(got))
		}
		if b, err := kb.BacklogOf(home, ""); err != nil || b.Journals != want {
			t.Errorf("%s there are %d journals (%v), want %d", when, b.Journals, err, want)
		}
	}
	backlog(1, "while its writer lives")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	now = time.Now()
	backlog(1, "just after its last change")
	now = now.Add(time.Hour)
	backlog(0, "later")
	backlog(0, "once more")
}

// A journal that its writer left without an end gets one, once.
func TestAbandonedRun(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s := openStore(t, home)
	j := writeRun(t, journalDir(t, home, ""), "run1", 3)
	if got := list(t, s, kb.Filter{}); len(got) != 3 {
		t.Fatalf("a living run has %d records", len(got))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got := list(t, s, kb.Filter{})
		if len(got) != 4 || got[3].Kind() != audit.KindRunFailed || got[3].Event.Reason != "killed" || got[3].RunSeq != 4 ||
			got[3].Head.Agent != "writer" {
			t.Fatalf("%d records, the last %+v", len(got), got[len(got)-1])
		}
	}
}

// A damaged journal is put aside with a message that says where; what is
// before the damage is kept, the run ends in it, and other runs are not held up.
func TestDamagedJournal(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s := openStore(t, home)
	dir := journalDir(t, home, "")
	for _, run := range []string{"run1", "run2"} {
		j := writeRun(t, dir, run, 10)
		end(t, j)
	}
	path := filepath.Join(dir, "run1")
	p, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p[len(bytes.TrimRight(p, "\x00"))/2] ^= 4 // behind the records there is room for more
	if err := os.WriteFile(path, p, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := s.Ingest(t.Context())
	if err != nil || len(got.Damaged) != 1 || !strings.Contains(got.Damaged[0], "run1") ||
		!strings.Contains(got.Damaged[0], "frame") {
		t.Fatalf("%+v %v", got, err)
	}
	if recs := list(t, s, kb.Filter{Run: "run2"}); len(recs) != 11 {
		t.Errorf("the other run has %d records", len(recs))
	}
	recs := list(t, s, kb.Filter{Run: "run1"})
	if last := recs[len(recs)-1]; len(recs) >= 11 || last.Kind() != audit.KindRunFailed ||
		last.Event.Reason != "journal_damaged" || !strings.Contains(last.Event.Message, "frame") {
		t.Errorf("%d records, the last %+v", len(recs), last)
	}
	b, err := kb.BacklogOf(home, "")
	if err != nil || len(b.Quarantined) != 1 {
		t.Fatalf("%+v %v", b, err)
	}
	if q, err := os.ReadFile(b.Quarantined[0]); err != nil || !slices.Equal(p, q) {
		t.Errorf("what was put aside is not what was there: %v", err)
	}
}

// filled makes a log of 5 runs of 2 agents with decisions and events.
func filled(t testing.TB) (*kb.Store, *kb.Store) {
	home := filepath.Join(t.TempDir(), "home")
	owner, client := openStore(t, home), openStore(t, home)
	for r := range 5 {
		j := newJournal(t, journalDir(t, home, ""), audit.Head{
			RunID: fmt.Sprintf("run%d", r), Tenant: kb.DefaultTenant,
			Agent: []string{"writer", "writer2"}[r%2],
		})
		d := decision(t, j)
		caps := make([]audit.Name, 3)
		for i, c := range []string{"fs.read", "fs.write", "fsx.read"} {
			var err error
			if caps[i], err = j.Intern(c); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 700 {
			d.Cap, d.Deny, d.Target = caps[i%3], i%5 == 0, fmt.Sprint(i)
			if _, err := j.Decide(&d); err != nil {
				t.Fatal(err)
			}
		}
		end(t, j)
	}
	return owner, client
}

// Every filter gives what going through the whole log by hand gives, oldest
// first, and a limit the last of it; the same for owner and client.
func TestFilters(t *testing.T) {
	owner, client := filled(t)
	all := list(t, owner, kb.Filter{})
	if len(all) != 5*701 {
		t.Fatalf("the log has %d records", len(all))
	}
	mid := all[len(all)/2].Time.UnixMilli()
	for i, f := range []kb.Filter{
		{},
		{Run: "run3"},
		{Run: "run"},
		{Agent: "writer"},
		{Agent: "writer2"},
		{Cap: "fs"},
		{Cap: "fs.read"},
		{Cap: "f"},
		{Decision: "deny"},
		{Decision: "allow"},
		{Decision: "deny", Agent: "writer"},
		{Run: "run1", Cap: "fs.write", Decision: "allow"},
		{SinceMS: mid},
		{Run: "run2", Agent: "nobody"},
		{After: 1},
		{After: 1750},
		{After: 5 * 701},
		{After: 5*701 + 3},
		{After: 1750, Run: "run3"},
		{After: 1750, Agent: "writer"},
		{After: 1750, Decision: "deny"},
		{After: 1750, SinceMS: mid, Cap: "fs"},
	} {
		var want []uint64
		for _, r := range all {
			d := r.Decision
			switch {
			case f.Run != "" && f.Run != r.Head.RunID, f.Agent != "" && f.Agent != r.Head.Agent, f.SinceMS > r.Time.UnixMilli(),
				r.Seq <= f.After:
			case (f.Cap != "" || f.Decision != "") && d == nil:
			case f.Cap != "" && f.Cap != d.Cap && !strings.HasPrefix(d.Cap, f.Cap+"."), f.Decision == "deny" && !d.Deny,
				f.Decision == "allow" && d.Deny:
			default:
				want = append(want, r.Seq)
			}
		}
		limits := []int{0, 1, 7, 1500}
		if f == (kb.Filter{}) {
			limits = append(limits, 100000)
		} else if testing.Short() { // the race detector: what is asked of a process beside others is the same for each
			limits = limits[i%2*2:][:2]
		}
		for _, limit := range limits {
			f.Limit = limit
			part := want
			if limit > 0 && limit < len(want) {
				part = want[len(want)-limit:]
			}
			for who, s := range []*kb.Store{owner, client} {
				var got []uint64
				for _, r := range list(t, s, f) {
					got = append(got, r.Seq)
				}
				if !slices.Equal(got, part) {
					t.Fatalf("%+v (client %d): %d records, want %d", f, who, len(got), len(part))
				}
				got = got[:0]
				for g, err := range s.Glances(t.Context(), f) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, g.Seq)
				}
				if !slices.Equal(got, part) {
					t.Fatalf("%+v (client %d): %d glances, want %d", f, who, len(got), len(part))
				}
			}
		}
	}
	for _, f := range []kb.Filter{{Decision: "maybe"}, {Limit: -1}} {
		for _, err := range client.Audit(t.Context(), f) {
			if !errors.Is(err, kb.ErrInvalid) {
				t.Errorf("%+v: %v", f, err)
			}
		}
	}
}

// Two tenants of one home see nothing of each other, and neither takes in what
// lies among its journals and is the other's.
//
//rlp:holds K4 K57
func TestTenants(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	a := openStore(t, home)
	b, err := kb.Open(t.Context(), kb.Options{Home: home, Tenant: "b"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if !a.Owner() || !b.Owner() {
		t.Fatal("two tenants, one owner")
	}
	if _, err := a.View(kb.Origin{}).Put(t.Context(), "notes", "a", []byte("secret")); err != nil {
		t.Fatal(err)
	}
	if v, err := b.View(kb.Origin{}).Get(t.Context(), "notes", "a"); err == nil {
		t.Errorf("tenant b reads %q", v.Bytes)
	}
	h := audit.Head{RunID: "run1", TraceID: "t", Tenant: "b", Agent: "writer"}
	own := newJournal(t, journalDir(t, home, "b"), h)
	d := decision(t, own)
	for range 3 {
		if _, err := own.Decide(&d); err != nil {
			t.Fatal(err)
		}
	}
	end(t, own)
	h.RunID, h.Tenant = "run2", "a"
	end(t, newJournal(t, journalDir(t, home, "b"), h))
	if got := list(t, a, kb.Filter{}); len(got) != 0 {
		t.Errorf("%d records of tenant b in the log of the other", len(got))
	}
	taken, err := b.Ingest(t.Context())
	if err != nil || len(taken.Damaged) != 1 || !strings.Contains(taken.Damaged[0], "another tenant") {
		t.Errorf("a journal of another tenant: %+v, %v", taken, err)
	}
	if got := list(t, b, kb.Filter{}); len(got) != 4 || got[0].Head.Tenant != "b" {
		t.Errorf("tenant b has %d records", len(got))
	}
	for _, bad := range []string{"..", "a/b", "a.b", "\x00", strings.Repeat("a", 65)} {
		if _, err := kb.Open(t.Context(), kb.Options{Home: home, Tenant: bad}); !errors.Is(err, kb.ErrInvalid) {
			t.Errorf("tenant %q: %v", bad, err)
		}
	}
}

// A seen record is one that was shown, and when.
type seen struct {
	rec audit.Record
	at  time.Time
}

// follow shows the denials of a home; started is closed at the first, which is
// not sent.
func follow(ctx context.Context, t *testing.T, home string) (<-chan seen, <-chan struct{}) {
	ch, started := make(chan seen, 1), make(chan struct{})
	go func() {
		defer close(ch)
		first := true
		for rec, err := range kb.Tail(ctx, kb.Options{Home: home}, kb.Filter{Decision: "deny"}) {
			if err != nil {
				t.Error(err)
				return
			}
			if first {
				close(started)
				first = false
				continue
			}
			select {
			case ch <- seen{rec, time.Now()}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ch, started
}

// Who follows the log sees each record of a running agent soon, without the
// store, which somebody else has.
func TestTail(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	openStore(t, home)
	dir := journalDir(t, home, "")
	old := writeRun(t, dir, "old", 5) // was there before, and goes on
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ch, started := follow(ctx, t, home)
	// The follower is at work once it shows something.
	d := decision(t, old)
	for waiting := true; waiting; {
		if _, err := old.Decide(&d); err != nil {
			t.Fatal(err)
		}
		select {
		case <-started:
			waiting = false
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("nothing is shown")
		}
	}
	j := newJournal(t, dir, audit.Head{RunID: "new", Tenant: kb.DefaultTenant, Agent: "writer"})
	d = decision(t, j)
	var took []time.Duration
	for i := range 10 {
		d.Target = fmt.Sprint("new-", i)
		made := time.Now()
		if _, err := j.Decide(&d); err != nil {
			t.Fatal(err)
		}
		for s := range ch {
			if s.rec.Head.RunID == "old" {
				continue
			}
			if s.rec.Decision.Target != d.Target || s.rec.RunSeq != uint64(i+1) || s.rec.Seq != 0 {
				t.Fatalf("record %d is shown as %+v", i, s.rec.Decision)
			}
			took = append(took, s.at.Sub(made))
			break
		}
	}
	if slices.Sort(took); len(took) != 10 || took[5] > 200*time.Millisecond { // the slowest waited for a busy machine
		t.Errorf("%d of 10 records were shown, after %v", len(took), took)
	}
}

// Who has seen the first records of a run asks for the others.
func TestRestOfARun(t *testing.T) {
	home := t.TempDir()
	s := openStore(t, home)
	dir := journalDir(t, home, "")
	writeRun(t, dir, "other", 3)
	end(t, writeRun(t, dir, "one", 9))
	all := list(t, s, kb.Filter{Run: "one"})
	for after := range uint64(len(all) + 3) {
		for _, limit := range []int{0, len(all)} {
			got := list(t, s, kb.Filter{Run: "one", AfterOfRun: after, Limit: limit})
			want := all[min(int(after), len(all)):]
			if len(got) != len(want) || len(got) > 0 && got[0].RunSeq != after+1 {
				t.Errorf("after %d of %d, limit %d: %d records", after, len(all), limit, len(got))
			}
		}
	}
	for _, err := range s.Audit(t.Context(), kb.Filter{AfterOfRun: 1}) {
		if err == nil {
			t.Error("the first record of no run was left out")
		}
	}
}

// A line is the record's exported form, to the byte, in the same order.
func TestLinesAreTheRecords(t *testing.T) {
	home := t.TempDir()
	s := openStore(t, home)
	j := newJournal(t, journalDir(t, home, ""), audit.Head{RunID: "0194", Tenant: kb.DefaultTenant, Agent: "a<b>"})
	for range 300 {
		if err := j.Event(&audit.Event{
			Kind: audit.KindCallDone, Verb: "kb_get", Status: "ok",
			DurationMS: 0.25,
		}); err != nil {
			t.Fatal(err)
		}
	}
	end(t, j)
	var want, got []string
	for _, r := range list(t, s, kb.Filter{}) {
		line, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, string(line))
	}
	for line, err := range s.Lines(t.Context(), kb.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(line))
	}
	if len(got) != 301 || !slices.Equal(got, want) {
		t.Errorf("%d lines of %d records", len(got), len(want))
	}
}
