package api

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// A reader follows a stream of events.
type reader struct {
	t    testing.TB
	resp *http.Response
	in   *bufio.Reader
}

func (k *kit) follow(a ask) *reader {
	k.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k.t.Cleanup(cancel)
	resp, err := k.Client().Do(k.request(ctx, a))
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { resp.Body.Close() })
	return &reader{k.t, resp, bufio.NewReader(resp.Body)}
}

// next is the next message by its fields; comments are under "". It is nil at the end.
func (r *reader) next() map[string]string {
	m := map[string]string{}
	for {
		line, err := r.in.ReadString('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return map[string]string{"event": "broken: " + err.Error()}
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			return m
		}
		name, value, _ := strings.Cut(line, ": ")
		m[name] = value
	}
}

// message is the next one that is no comment.
func (r *reader) message() map[string]string {
	for {
		if m := r.next(); m == nil || m["event"] != "" {
			return m
		}
	}
}

const oldRun = "019ab0de-79ea-74f8-9d3e-6d0c3f0a1b2c"

// A stream has every record once and in order, goes on behind the last one that its
// reader has, and is told to ask no more where there is nothing more.
func TestStreamOfStoredRun(t *testing.T) {
	h := &host{log: &log{}}
	h.log.add(oldRun, 8)
	k := serve(t, h, Options{}, service.Options{})
	path := "/runs/" + oldRun + "/events"
	for name, c := range map[string]struct {
		ask  ask
		from uint64
	}{
		"whole":         {ask{path: path}, 0},
		"after":         {ask{path: path + "?after=4"}, 4},
		"Last-Event-ID": {ask{path: path + "?after=1", head: []string{"Last-Event-ID: 7"}}, 7},
	} {
		r := k.follow(c.ask)
		if got := r.resp.Header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
			t.Errorf("%s: %s", name, got)
		}
		for want := c.from + 1; want <= 10; want++ {
			m := r.message()
			if m["id"] != strconv.FormatUint(want, 10) || uint64(object1(t, m["data"])["run_seq"].(float64)) != want ||
				m["event"] != object1(t, m["data"])["kind"] {
				t.Fatalf("%s: record %d is %v", name, want, m)
			}
		}
		if m := r.message(); m["event"] != "end" || object1(t, m["data"])["state"] != "done" || m["id"] != "" {
			t.Errorf("%s ends with %v", name, m)
		}
		if m := r.next(); m != nil {
			t.Errorf("%s: %v behind the end", name, m)
		}
	}
	if resp, _ := k.do(ask{path: path, head: []string{"Last-Event-ID: 10"}}); resp.StatusCode != http.StatusNoContent {
		t.Error(resp.Status)
	}
	for _, bad := range []ask{{path: path, head: []string{"Last-Event-ID: x"}}, {path: path + "?after=-1"}} {
		if resp, body := k.do(bad); resp.StatusCode != http.StatusBadRequest {
			t.Error(resp.Status, body)
		}
	}
	for _, other := range []ask{
		{path: path, head: []string{"X-Who: other"}},
		{path: strings.Replace(path, "c/e", "d/e", 1)},
	} {
		if resp, _ := k.do(other); resp.StatusCode != http.StatusNotFound {
			t.Error(resp.Status)
		}
	}
}

// What breaks under one stream ends that stream, and says nothing of what it broke on.
func TestAStreamThatBreaksEndsAlone(t *testing.T) {
	h := &host{log: &log{breaks: true}}
	h.log.add(oldRun, 8)
	var logged logText
	k := serve(t, h, Options{Log: slog.New(slog.NewTextHandler(&logged, nil))}, service.Options{})
	path := "/runs/" + oldRun + "/events"
	if m := k.follow(ask{path: path + "?after=1"}).message(); m["event"] != "error" || !strings.Contains(m["data"],
		"internal") || strings.Contains(m["data"], "secret") {
		t.Errorf("the stream ends with %v", m)
	}
	if m := k.follow(ask{path: path}).message(); m["id"] != "1" {
		t.Errorf("control: another stream begins with %v", m)
	}
	if text := logged.text(); !strings.Contains(text, "a stream broke") || strings.Contains(text, "secret") {
		t.Errorf("logged is %s", text)
	}
}

// logText is a log that is read while it is written.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Fifty readers of a run that goes on see each of its records, in order, and its
// end; so does one who comes late and one who loses the connection.
func TestFiftyReaders(t *testing.T) {
	const readers, n = 50, 200
	h := &host{log: &log{}}
	began, more := make(chan struct{}), make(chan struct{})
	h.launch = func(_ context.Context, c *service.Caller, q *service.Request, b service.Begin) (*launcher.Report, error) {
		head := audit.Head{RunID: b.RunID, TraceID: q.TraceID, Tenant: c.Tenant, Agent: q.Agent}
		put := func(r audit.Record) {
			rec := h.log.put(head, r)
			b.Record(&rec)
		}
		put(audit.Record{Event: &audit.Event{Kind: audit.KindRunStart}})
		close(began)
		<-more
		for range n {
			put(audit.Record{Decision: &audit.DecisionRecord{Cap: "fs.read", Op: "fs_read", Target: "/x", Reason: "granted"}})
		}
		put(audit.Record{Event: &audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}})
		return reportOf(c, q, b, launcher.OK), nil
	}
	k := serve(t, h, Options{}, service.Options{})
	_, taken := k.run(`{"agent":"a","wait":false}`)
	path, _ := taken["events"].(string)
	<-began
	var wg sync.WaitGroup
	follow := func(breaks bool) {
		defer wg.Done()
		r := k.follow(ask{path: path})
		for want := 1; want <= n+2; want++ {
			m := r.message()
			if m["id"] != strconv.Itoa(want) {
				t.Errorf("record %d is %v", want, m)
				return
			}
			if breaks && want%70 == 0 {
				r.resp.Body.Close()
				r = k.follow(ask{path: path, head: []string{"Last-Event-ID: " + m["id"]}})
			}
		}
		if m := r.message(); m["event"] != "end" || object1(t, m["data"])["outcome"] != "ok" {
			t.Errorf("the end is %v", m)
		}
	}
	for i := range readers {
		wg.Add(1)
		go follow(i%10 == 0)
	}
	close(more)
	wg.Wait()
	wg.Add(1)
	follow(false)
}

// Who follows all runs sees each change of those of its tenant from the moment on
// that the answer begins.
func TestStreamOfEvents(t *testing.T) {
	k := serve(t, &host{}, Options{}, service.Options{})
	r := k.follow(ask{path: "/events"})
	other := k.follow(ask{path: "/events", head: []string{"X-Who: other"}})
	_, report := k.run(`{"agent":"a"}`)
	var ids []string
	for _, name := range []string{"run.queued", "run.started", "run.ended"} {
		m := r.message()
		run, _ := object1(t, m["data"])["run"].(map[string]any)
		if m["event"] != name || run["run_id"] != report["run_id"] {
			t.Errorf("%s is %v", name, m)
		}
		ids = append(ids, m["id"])
	}
	again := k.follow(ask{path: "/events?after=" + ids[0]})
	if m := again.message(); m["id"] != ids[1] {
		t.Errorf("%v, want %s", m, ids[1])
	}
	_, _ = k.run(`{"agent":"b"}`, "X-Who: other")
	if m := other.message(); !strings.Contains(m["data"], `"tenant":"other"`) {
		t.Errorf("another tenant sees %v", m)
	}
}
