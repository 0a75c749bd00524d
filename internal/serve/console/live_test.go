package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// A stage is the pages with a service whose runs go on as a test tells them.
type stage struct {
	*fakeHost
	service *service.Service
	handler http.Handler
	goOn    chan *launcher.Report // ends the run that waits
	begun   chan string
}

func newStage(t testing.TB) *stage {
	s := &stage{fakeHost: newFakeHost(t), goOn: make(chan *launcher.Report), begun: make(chan string, 16)}
	aDay(s.log)
	s.launch = s.play
	s.service = service.New(service.Options{Host: s, Workers: 2, Queue: 8, Now: clockOfTests})
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // ends what is under way at once
		_ = s.service.Drain(ctx)
	})
	mux := http.NewServeMux()
	mux.Handle("/", New(Options{Runs: s.service, Host: s, Now: clockOfTests}))
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /runs/{id}/events", s.records)
	s.handler = as(mux, operator())
	return s
}

// play is a run: it begins, and ends as the test says.
func (s *stage) play(ctx context.Context, r *service.Request, b service.Begin) (*launcher.Report, error) {
	b.Event("run.started", map[string]any{"run_id": b.RunID, "agent": r.Agent})
	s.log.add(b.RunID, r.Agent, now, digestOfNotes()[:3], audit.Event{})
	s.begun <- b.RunID
	select {
	case report := <-s.goOn:
		report.RunID, report.Agent, report.Outcome = b.RunID, r.Agent, "ok"
		s.log.end(b.RunID)
		return report, nil
	case <-ctx.Done():
		return &launcher.Report{RunID: b.RunID, Agent: r.Agent, Outcome: launcher.Cancelled}, nil
	}
}

// end puts the last record behind those of a run.
func (l *fakeLog) end(run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.records[0]
	for _, r := range l.records {
		if r.Head.RunID == run {
			last = r
		}
	}
	last.Seq, last.RunSeq, last.Decision = uint64(len(l.records))+1, last.RunSeq+1, nil
	last.Event = &audit.Event{Kind: audit.KindRunComplete, Outcome: "ok", Usage: map[string]int64{
		"allowed": 2,
		"denied":  1, "wall_ms": 40,
	}}
	l.records = append(l.records, last)
	for i := range l.runs {
		if l.runs[i].RunID == run {
			l.runs[i].EndedMS, l.runs[i].End, l.runs[i].Outcome = last.Time.UnixMilli(), audit.KindRunComplete, "ok"
		}
	}
}

// submit asks for a run, and waits until it goes on.
func (s *stage) submit(t testing.TB, agent string) string {
	t.Helper()
	run, err := s.service.Submit(context.Background(), operator(), &service.Request{Door: service.HTTP, Agent: agent}, "")
	if err != nil {
		t.Fatal(err)
	}
	<-s.begun
	return run.ID()
}

// finish ends the run that goes on with what it printed.
func (s *stage) finish(t testing.TB, id string, report *launcher.Report) {
	t.Helper()
	run, err := s.service.Run(context.Background(), operator(), id)
	if err != nil {
		t.Fatal(err)
	}
	s.goOn <- report
	<-run.Done()
}

// events and records stand in for the rooms that serve them.
func (s *stage) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	for e, err := range s.service.Events(r.Context(), service.CallerOf(r.Context()), 0) {
		if err != nil {
			return
		}
		data, _ := json.Marshal(e.State)
		fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Name, data)
		w.(http.Flusher).Flush()
	}
}

func (s *stage) records(w http.ResponseWriter, r *http.Request) {
	run, err := s.service.Run(r.Context(), service.CallerOf(r.Context()), r.PathValue("id"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	select {
	case <-run.Done():
		fmt.Fprint(w, "event: end\ndata: {}\n\n")
	case <-r.Context().Done():
	}
}

func TestARunUnderWayAndItsEnd(t *testing.T) {
	s := newStage(t)
	id := s.submit(t, "notes_digest")
	_, body := get(t, s.handler, "/ui/runs", nil)
	want(t, body, "<strong>1</strong> running", id, "running</span>")
	_, body = get(t, s.handler, "/ui/runs?state=active", nil)
	want(t, body, id, "!"+runID(59))
	_, body = get(t, s.handler, "/ui/runs/"+id, nil)
	want(t, body, "End this run", `data-events="/runs/`+id+`/events?after=`, "when the run has ended")
	s.finish(t, id, &launcher.Report{
		Stdout: "14 notes\n", Stderr: "one was empty\n",
		Result: result(map[string]int{"notes": 14}), Lane: &launcher.Lane{Name: "wasm"},
	})
	_, body = get(t, s.handler, "/ui/runs/"+id, nil)
	want(t, body, "14 notes", "one was empty", "&#34;notes&#34;: 14", "!End this run", "user:1000", "wasm")
	want(t, body, "!data-events")
}

// Runs that wait for a worker need somebody, as long as they do.
func TestHomeTellsOfRunsThatWait(t *testing.T) {
	s := newStage(t)
	for range 2 { // as many as there are workers
		s.submit(t, "notes_digest")
	}
	_, body := get(t, s.handler, "/", nil)
	want(t, body, "!Runs wait for a worker")
	q := &service.Request{Door: service.HTTP, Agent: "tree_audit"}
	if _, err := s.service.Submit(t.Context(), operator(), q, ""); err != nil {
		t.Fatal(err)
	}
	_, body = get(t, s.handler, "/", nil)
	want(t, body, "Runs wait for a worker", "1 run, and as many run as may", "/ui/runs?state=active")
	s.goOn <- &launcher.Report{} // either of them ends
	<-s.begun
	_, body = get(t, s.handler, "/", nil)
	want(t, body, "!Runs wait for a worker")
}

func TestARunIsEndedByItsButton(t *testing.T) {
	s := newStage(t)
	id := s.submit(t, "notes_digest")
	if resp, _ := get(t, s.handler, "/ui/runs/"+id+"/cancel", nil); resp.StatusCode == http.StatusSeeOther {
		t.Error("a GET ended it")
	}
	resp, _ := get(t, s.handler, "/ui/runs/"+id+"/cancel", map[string][]string{})
	if resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("cancel: %d", resp.StatusCode)
	}
	run, err := s.service.Run(context.Background(), operator(), id)
	if err != nil {
		t.Fatal(err)
	}
	<-run.Done()
	_, body := get(t, s.handler, "/ui/runs/"+id, nil)
	want(t, body, "cancelled")
}

// Another tenant's runs are not there.
func TestRunsOfOthersAreNotThere(t *testing.T) {
	s := newStage(t)
	id := s.submit(t, "notes_digest")
	s.fakeHost.log = &fakeLog{} // that of the other tenant
	other := operator()
	other.Tenant = "acme"
	h := as(New(Options{Runs: s.service, Host: s, Now: clockOfTests}), other)
	if resp, _ := get(t, h, "/ui/runs/"+id, nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the run of another tenant: %d", resp.StatusCode)
	}
	_, body := get(t, h, "/ui/runs", nil)
	want(t, body, "!"+id)
	if strings.Contains(body, "<strong>1</strong> running") {
		t.Error("it is counted")
	}
}
