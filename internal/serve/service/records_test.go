package service_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/launcher"
)

// A memory is a log that has what it was given.
type memory struct {
	mu    sync.Mutex
	list  []audit.Record
	asked int
	whole int // of the questions, those for more at a time than a reader is to hold
}

func (m *memory) add(r audit.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Seq = uint64(len(m.list) + 1)
	m.list = append(m.list, r)
}

func (m *memory) Audit(_ context.Context, f kb.Filter) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		m.mu.Lock()
		m.asked++
		if f.Page != service.PageOfReader {
			m.whole++
		}
		list := append([]audit.Record(nil), m.list...)
		m.mu.Unlock()
		for _, r := range list {
			if f.Match(&r) && !yield(r, nil) {
				return
			}
		}
	}
}

func (m *memory) Lines(context.Context, kb.Filter) iter.Seq2[[]byte, error] { return nil }
func (m *memory) Head(context.Context) (kb.Head, error)                     { return kb.Head{}, nil }

func (m *memory) Runs(context.Context, kb.RunQuery) iter.Seq2[kb.RunSummary, error] {
	return nil
}

func (m *memory) questions() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// A teller makes the records of one run: they are in its log, and told.
type teller struct {
	log  *memory
	tell func(*audit.Record)
	head audit.Head
	n    uint64
}

func (k *teller) record(tell bool, e *audit.Event) {
	k.n++
	r := audit.Record{RunSeq: k.n, Kept: true, Time: time.Now(), Head: k.head}
	if e == nil {
		r.Decision = &audit.DecisionRecord{Cap: "fs.read", Op: "fs_read", Target: fmt.Sprint("/t/", k.n), Deny: k.n%5 == 0}
	} else {
		r.Event = e
	}
	k.log.add(r)
	if tell {
		k.tell(&r)
	}
}

// gapless follows a run to its end and complains about what is missing.
func gapless(t *testing.T, s *service.Service, c *service.Caller, run string, after uint64,
	slow func(),
) (last service.Record) {
	t.Helper()
	at := after
	for rec, err := range s.Records(t.Context(), c, run, after) {
		if err != nil {
			t.Errorf("after %d: %v", at, err)
			return last
		}
		if at++; rec.RunSeq != at {
			t.Errorf("record %d where %d belongs", rec.RunSeq, at)
			return last
		}
		if slow != nil {
			slow()
		}
		last = rec
	}
	return last
}

// Whoever follows, from wherever, however slowly, and whatever the run was told of
// its records: each comes once and in order, and the run waits for nobody.
func TestFollowersMissNothing(t *testing.T) {
	const records = 5000
	log := &memory{}
	begun, going := make(chan struct{}), make(chan struct{})
	h := &host{log: log}
	h.launch = func(_ context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
		k := &teller{log: log, tell: b.Record, head: audit.Head{RunID: b.RunID, Tenant: "t", Agent: "a"}}
		k.record(true, &audit.Event{Kind: audit.KindRunStart})
		close(begun)
		<-going
		for i := range records {
			k.record(i%7 != 0, nil) // some the run is not told of
		}
		k.record(true, &audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"})
		return report("", q, b, launcher.OK), nil
	}
	s := serve(h, service.Options{Workers: 1})
	c := caller("ann", "t")
	r := submit(t, s, c, ask("a"))
	<-begun
	var all sync.WaitGroup
	stuck := make(chan struct{})
	for i := range 20 {
		all.Go(func() {
			var slow func()
			n := 0
			if i%4 == 3 { // it stops until the run is over
				slow = func() {
					if n++; n == 50 {
						<-stuck
					}
				}
			}
			if last := gapless(t, s, c, r.ID(), uint64(i%5*100), slow); last.RunSeq != records+2 ||
				last.Kind != audit.KindRunComplete {
				t.Errorf("follower %d ended at record %d, %s", i, last.RunSeq, last.Kind)
			}
		})
	}
	close(going)
	ended(t, r) // whoever is stuck
	close(stuck)
	all.Wait()
	if last := gapless(t, s, c, r.ID(), records, nil); last.RunSeq != records+2 {
		t.Errorf("afterwards: %d", last.RunSeq)
	}
	if n := log.questions(); n == 0 || log.whole > 0 {
		t.Errorf("of %d questions to the log %d were for more at a time than one who reads slowly may hold", n, log.whole)
	}
}

// A short run that is followed from its beginning never asks the log.
func TestATrailNeedsNoLog(t *testing.T) {
	log := &memory{}
	h := &host{log: log}
	going := make(chan struct{})
	h.launch = func(_ context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
		k := &teller{log: log, tell: b.Record, head: audit.Head{RunID: b.RunID, Tenant: "t"}}
		for range 20 {
			k.record(true, nil)
		}
		<-going
		k.record(true, &audit.Event{Kind: audit.KindRunFailed, Outcome: "trap"})
		return report("", q, b, launcher.Trap), nil
	}
	s := serve(h, service.Options{Workers: 1})
	c := caller("ann", "t")
	r := submit(t, s, c, ask("a"))
	n := 0
	for rec, err := range s.Records(t.Context(), c, r.ID(), 0) {
		if n++; err != nil {
			t.Fatal(err)
		}
		if n == 20 {
			close(going)
		}
		if want, err := rec.Rec.AppendJSON(nil); err != nil || string(rec.Line) != string(want) {
			t.Errorf("line %s, want %s (%v)", rec.Line, want, err)
		}
	}
	if n != 21 || log.questions() != 0 {
		t.Errorf("%d records, the log was asked %d times", n, log.questions())
	}
}

// A run that ends without a last record ends its followers all the same.
func TestARunWithoutAnEnd(t *testing.T) {
	log := &memory{}
	h := &host{log: log}
	h.launch = func(_ context.Context, _ *service.Request, b service.Begin) (*launcher.Report, error) {
		k := &teller{log: log, tell: b.Record, head: audit.Head{RunID: b.RunID, Tenant: "t"}}
		k.record(true, nil)
		panic("x")
	}
	s := serve(h, service.Options{Workers: 1})
	c := caller("ann", "t")
	r := submit(t, s, c, ask("a"))
	if last := gapless(t, s, c, r.ID(), 0, nil); last.RunSeq != 1 {
		t.Errorf("%+v", last)
	}
	ended(t, r)
	if last := gapless(t, s, c, r.ID(), 1, nil); last.RunSeq != 0 {
		t.Errorf("%+v", last)
	}
}

// Runs that a run launches are runs, too, and end no later than it.
func TestDelegatesAreRuns(t *testing.T) {
	log := &memory{}
	h := &host{log: log}
	first, second := newID(t), newID(t)
	begun, going := make(chan struct{}), make(chan struct{})
	h.launch = func(_ context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
		own := &teller{log: log, tell: b.Record, head: audit.Head{RunID: b.RunID, Tenant: "t"}}
		own.record(true, nil)
		one := &teller{log: log, tell: b.Record, head: audit.Head{
			RunID: first, Tenant: "t", Agent: "helper",
			ParentRun: b.RunID,
		}}
		two := &teller{log: log, tell: b.Record, head: audit.Head{
			RunID: second, Tenant: "t", Agent: "helper",
			ParentRun: first,
		}}
		for _, k := range []*teller{one, two} {
			k.record(true, nil)
		}
		close(begun)
		<-going
		one.record(true, &audit.Event{Kind: audit.KindPolicyRejected, Outcome: "refused", ExitCode: 77})
		return report("", q, b, launcher.OK), nil
	}
	s := serve(h, service.Options{Workers: 1})
	c := caller("ann", "t")
	r := submit(t, s, c, ask("a"))
	<-begun
	kid, err := s.Run(t.Context(), c, first)
	if err != nil {
		t.Fatal(err)
	}
	if st := kid.State(); st.State != service.Running || st.ParentRun != r.ID() || st.Agent != "helper" ||
		st.Allowed != 1 || st.Denied != 0 || st.Caller != "ann" {
		t.Errorf("%+v", st)
	}
	if err := s.Cancel(t.Context(), c, first); err == nil {
		t.Error("a delegate was cancelled by itself")
	}
	if _, err := s.Run(t.Context(), caller("ann", "other"), first); !errors.Is(err, service.ErrNotFound) {
		t.Errorf("another tenant sees it: %v", err)
	}
	close(going)
	if last := gapless(t, s, c, first, 0, nil); last.Kind != audit.KindPolicyRejected {
		t.Errorf("%+v", last)
	}
	if st := ended(t, kid); st.State != service.Refused || st.ExitCode != 77 {
		t.Errorf("%+v", st)
	}
	ended(t, r)
	other, err := s.Run(t.Context(), c, second)
	if err != nil {
		t.Fatal(err)
	}
	if st := ended(t, other); st.State != service.Done {
		t.Errorf("one whose end nobody told: %+v", st)
	}
	if _, err := kid.Report(new(service.Caller)); !errors.Is(err, service.ErrNotFound) {
		t.Error(err)
	}
	if l := s.Load(); l.Done != 1 || l.Refused != 0 {
		t.Errorf("delegates were counted as runs of the queue: %+v", l)
	}
}

func newID(t testing.TB) string {
	t.Helper()
	id, err := ident.NewRun()
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// A run of another process is followed by its journal, from wherever, and to its
// end; one that nobody has is not found; that of another tenant neither.
func TestRunsOfOtherProcesses(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	store, err := kb.Open(t.Context(), kb.Options{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	other, err := kb.Open(t.Context(), kb.Options{Home: home, Tenant: "other"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	s := serve(&host{log: logs{kb.DefaultTenant: store, "other": other}}, service.Options{Workers: 1})
	c := caller("ann", kb.DefaultTenant)
	dir, err := kb.JournalDir(home, "")
	if err != nil {
		t.Fatal(err)
	}
	id := newID(t)
	j, err := journal.Create(journal.Options{Dir: dir, Head: audit.Head{RunID: id, Tenant: kb.DefaultTenant, Agent: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	write := func(kind string, n int) {
		for range n {
			if err := j.Event(&audit.Event{Kind: kind, Status: "ok"}); err != nil {
				t.Error(err)
			}
		}
	}
	write(audit.KindRunStart, 1)
	write(audit.KindCallDone, 50)
	for name, who := range map[string]*service.Caller{
		"another tenant":      caller("ann", "other"),
		"who may only launch": {Name: "ann", Tenant: kb.DefaultTenant, May: service.Launch},
	} {
		for _, err := range s.Records(t.Context(), who, id, 0) {
			if !errors.Is(err, service.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, bad := range []string{newID(t), "../" + id, ""} {
		for _, err := range s.Records(t.Context(), c, bad, 0) {
			if !errors.Is(err, service.ErrNotFound) {
				t.Errorf("%q: %v", bad, err)
			}
		}
	}
	var all sync.WaitGroup
	here := make(chan struct{}, 10)
	for i := range 5 {
		all.Go(func() {
			after := uint64(i * 20)
			n := uint64(0)
			first := func() {
				if n++; after+n == 51 || after > 51 && n == 1 {
					here <- struct{}{}
				}
			}
			if last := gapless(t, s, c, id, after, first); last.RunSeq != 2052 || last.Kind != audit.KindRunComplete {
				t.Errorf("follower %d ended at record %d", i, last.RunSeq)
			}
		})
	}
	for range 3 { // of those that begin in what is there
		<-here
	}
	for range 20 {
		write(audit.KindCallDone, 100)
	}
	write(audit.KindRunComplete, 1)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if last := gapless(t, s, c, id, 2051, nil); last.RunSeq != 2052 {
		t.Errorf("afterwards: %+v", last)
	}
}

// A run of another process that was killed is over for its followers when the log
// says so.
func TestAKilledRunOfAnotherProcess(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	store, err := kb.Open(t.Context(), kb.Options{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	dir, err := kb.JournalDir(home, "")
	if err != nil {
		t.Fatal(err)
	}
	id := newID(t)
	j, err := journal.Create(journal.Options{Dir: dir, Head: audit.Head{RunID: id, Tenant: kb.DefaultTenant}})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Event(&audit.Event{Kind: audit.KindRunStart}); err != nil {
		t.Fatal(err)
	}
	s := serve(&host{log: store}, service.Options{Workers: 1})
	last := gapless(t, s, caller("ann", kb.DefaultTenant), id, 0, func() { j.Close() })
	if last.Kind != audit.KindRunFailed || last.Rec.Event.Reason != "killed" {
		t.Errorf("%+v", last)
	}
}
