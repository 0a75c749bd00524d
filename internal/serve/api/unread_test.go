package api

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
)

// addLong records a run of n decisions about long paths.
func (l *log) addLong(run string, n int) {
	head := audit.Head{RunID: run, TraceID: strings.Repeat("ab", 16), Tenant: "default", Agent: "notes_digest"}
	for range n {
		l.put(head, audit.Record{Decision: &audit.DecisionRecord{
			Cap: "fs.read", Op: "fs_read", Target: "/" + strings.Repeat("x", 1<<10), Reason: "granted",
		}})
	}
	l.put(head, audit.Record{Event: &audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}})
}

// sentUnread is how many bytes of answers were sent on each of n connections whose
// other ends read nothing, before they were given up.
func sentUnread(t *testing.T, l net.Listener, n int, path, head string) (mean int64) {
	t.Helper()
	h := &host{log: &log{}}
	h.log.addLong(oldRun, 6000)
	var logged logText
	handler, _ := handlerOf(h, Options{
		Log: slog.New(slog.NewJSONHandler(&logged, nil)), Patience: time.Second,
	}, service.Options{})
	var all sync.WaitGroup
	all.Add(n)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/capabilities" {
			defer all.Done()
		}
		handler.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(l) }() // until it is closed
	t.Cleanup(func() { server.Close() })
	for i := range n {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		who := []string{"", "reader"}[i%2]
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nX-Who: %s\r\n%s\r\n", path, who, head); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/capabilities", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Who", "other")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("another caller is answered %s", resp.Status)
	}
	all.Wait()
	for line := range strings.Lines(logged.text()) {
		var of struct {
			Route string
			Bytes int64
		}
		if err := json.Unmarshal([]byte(line), &of); err != nil {
			t.Fatal(err)
		}
		if of.Route != "/capabilities" {
			mean += of.Bytes
		}
	}
	return mean / int64(n)
}

// Of streams and lists of records that nobody reads the system holds little, for
// two hundred as for one, and others are answered. The control is the same on
// connections that are not bounded.
func TestStreamsThatNobodyReadsHoldLittle(t *testing.T) {
	const most = 512 << 10
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	events, lines := "/runs/"+oldRun+"/events", "Accept: application/x-ndjson\r\n"
	bound := func() net.Listener {
		return Bounded(listen(), 400, time.Now, func(net.Conn) string { return "" })
	}
	if n := sentUnread(t, bound(), 200, events, ""); n > most {
		t.Errorf("%d bytes of each stream were sent", n)
	}
	if n := sentUnread(t, bound(), 50, "/audit", lines); n > most {
		t.Errorf("%d bytes of each list were sent", n)
	}
	if n := sentUnread(t, listen(), 10, events, ""); n <= most {
		t.Errorf("control: %d bytes of each stream were sent", n)
	}
}

// A list of records is a stream as another one is: a caller has a share of them.
func TestListsOfRecordsAreStreams(t *testing.T) {
	k := serve(t, &host{log: &log{}}, Options{Streams: partOfStreams}, service.Options{})
	lines := ask{path: "/audit", head: []string{"Accept: application/x-ndjson"}}
	if resp, body := k.do(lines); resp.StatusCode != http.StatusOK {
		t.Errorf("control: %s %s", resp.Status, body)
	}
	k.follow(ask{path: "/events"}).next()
	if resp, body := k.do(lines); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %s %s", resp.Status, body)
	}
}

// A page of records has a MiB of them, however many are asked for; those behind it
// are on the next ones, each once.
func TestPagesOfRecordsAreBounded(t *testing.T) {
	const n = 4000
	h := &host{log: &log{}}
	h.log.addLong(oldRun, n)
	k := serve(t, h, Options{}, service.Options{})
	seen, cursor := 0, ""
	for pages := 0; ; pages++ {
		resp, body := k.do(ask{path: "/audit?limit=1000" + cursor})
		var page struct {
			Records []struct{ Seq int }
			Next    string
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status, err)
		}
		if len(body) > mostPage+64<<10 {
			t.Errorf("a page has %d bytes", len(body))
		}
		for _, r := range page.Records {
			if seen++; r.Seq != seen {
				t.Fatalf("record %d where %d belongs", r.Seq, seen)
			}
		}
		if page.Next == "" {
			if seen != n+1 || pages == 0 {
				t.Errorf("%d records on %d pages", seen, pages+1)
			}
			return
		}
		cursor = "&cursor=" + page.Next
	}
}

// Pages that are being made, or that nobody reads, are in the share of their caller:
// one more is busy, and others get theirs.
func TestPagesAreShared(t *testing.T) {
	h := &host{log: &log{}}
	h.log.addLong(oldRun, 100)
	for _, path := range []string{"/audit", "/runs"} {
		within(t, h, Options{Held: partOfHeld * heldByPage}, func(t *testing.T, p *pipes) {
			page := func(who, path string) *piped {
				return p.dial(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\nX-Who: "+who+"\r\n\r\n")
			}
			ask := func(who string) *piped { return page(who, path) }
			unread := page("reader", "/audit")
			synctest.Wait()
			if resp, said, _ := ask("reader").answer(t); resp.StatusCode != http.StatusTooManyRequests ||
				resp.Header.Get("Retry-After") == "" {
				t.Errorf("%s: one more: %s %.100s", path, resp.Status, said)
			}
			if resp, said, _ := ask("").answer(t); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: another caller: %s %.100s", path, resp.Status, said)
			}
			if resp, said, _ := unread.answer(t); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: the first: %s %.100s", path, resp.Status, said)
			}
			if resp, said, _ := ask("reader").answer(t); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: when it was read: %s %.100s", path, resp.Status, said)
			}
		})
	}
}
