package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// Pipes are a network within a bubble of synctest, whose time goes by when nobody
// has anything to do: bounds of time are held there as they are, and take none.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// dial connects, and sends what there is to send as it is taken.
func (p *pipes) dial(t *testing.T, pieces ...string) *piped {
	t.Helper()
	mine, theirs := net.Pipe()
	p.conns <- theirs
	t.Cleanup(func() { mine.Close() })
	go func() {
		for _, piece := range pieces {
			if piece == wait {
				<-time.After(pause) // of the bubble
				continue
			}
			if _, err := io.WriteString(mine, piece); err != nil {
				return // they are gone
			}
		}
	}()
	return &piped{mine, bufio.NewReader(mine), time.Now()}
}

// A wait among pieces is one of a pause.
const (
	wait  = "\x00wait"
	pause = 20 * time.Second
)

type piped struct {
	net.Conn
	in    *bufio.Reader
	since time.Time
}

// answer is the next one, and when its head was there.
func (p *piped) answer(t *testing.T) (*http.Response, string, time.Duration) {
	t.Helper()
	resp, err := http.ReadResponse(p.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(p.since)
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body), took
}

// within serves in a bubble.
func within(t *testing.T, h *host, o Options, do func(t *testing.T, p *pipes)) {
	withService(t, h, o, service.Options{}, func(t *testing.T, p *pipes, _ *service.Service) { do(t, p) })
}

// withService is the same with a service of one's own.
func withService(t *testing.T, h *host, o Options, so service.Options, do func(*testing.T, *pipes, *service.Service)) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		handler, s := handlerOf(h, o, so)
		server := &http.Server{Handler: handler, ConnState: ConnState}
		over := make(chan struct{})
		go func() {
			defer close(over)
			if err := server.Serve(p); !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		}()
		t.Cleanup(func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
			<-over
		})
		do(t, p, s)
	})
}

// A body has a minute to arrive: at the end of it it is given up, and within it it
// may come as slowly as it likes, whoever reads it.
func TestSlowBodies(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	})
	const body = `{"agent":"a"}`
	for _, path := range []string{"/run", "/ui/form"} { // other rooms' bodies too
		head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
			path, len(body))
		within(t, &host{}, Options{Console: page}, func(t *testing.T, p *pipes) {
			late, said, took := p.dial(t, head, body[:5]).answer(t)
			if late.StatusCode != http.StatusRequestTimeout || took != time.Minute || path == "/run" &&
				(object1(t, said)["error"] != "timeout" || !late.Close) {
				t.Errorf("%s: %s after %v: %s", path, late.Status, took, said)
			}
			slow, said, took := p.dial(t, head, body[:5], wait, body[5:6], wait, body[6:]).answer(t)
			if slow.StatusCode != http.StatusOK || took != 2*pause {
				t.Errorf("%s: %s after %v: %s", path, slow.Status, took, said)
			}
		})
	}
}

// A run that takes longer than any reader's patience is answered all the same.
func TestLongRuns(t *testing.T) {
	h := &host{launch: func(ctx context.Context, c *service.Caller, q *service.Request, b service.Begin) (*launcher.Report,
		error,
	) {
		select {
		case <-time.After(time.Hour):
			return reportOf(c, q, b, launcher.OK), nil
		case <-ctx.Done():
			return reportOf(c, q, b, launcher.Cancelled), nil
		}
	}}
	within(t, h, Options{}, func(t *testing.T, p *pipes) {
		const body = `{"agent":"a"}`
		resp, said, took := p.dial(t, fmt.Sprintf("POST /run HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body),
			body)).answer(t)
		if resp.StatusCode != http.StatusOK || object1(t, said)["outcome"] != "ok" || took != time.Hour {
			t.Errorf("%s after %v: %s", resp.Status, took, said)
		}
	})
}

// A reader that reads nothing is given up when its patience is over, and gives its
// place back.
func TestDeadReaderHoldsNothing(t *testing.T) {
	h := &host{log: &log{}}
	head := audit.Head{RunID: oldRun, TraceID: "t", Tenant: "default", Agent: "a"}
	for range 20 {
		h.log.put(head, audit.Record{Decision: &audit.DecisionRecord{
			Cap: "fs.read", Op: "fs_read",
			Target: strings.Repeat("x", 4000), Reason: "granted",
		}})
	}
	request := "GET /runs/" + oldRun + "/events HTTP/1.1\r\nHost: x\r\n\r\n"
	within(t, h, Options{Streams: 1}, func(t *testing.T, p *pipes) {
		dead := p.dial(t, request)
		if _, err := dead.in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if resp, said, _ := p.dial(t, request).answer(t); resp.StatusCode != http.StatusTooManyRequests {
			t.Fatal(resp.Status, said)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		live := p.dial(t, request)
		if line, err := live.in.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Errorf("it holds its place: %q %v", line, err)
		}
	})
}

// A stream in which nothing happens says that it lives, every 15 seconds.
func TestSilentStreamsLive(t *testing.T) {
	within(t, &host{}, Options{}, func(t *testing.T, p *pipes) {
		c := p.dial(t, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(c.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(resp.Body)
		for _, want := range []struct {
			line string
			at   time.Duration
		}{{": follows\n", 0}, {": lives\n", 15 * time.Second}, {": lives\n", 30 * time.Second}} {
			line, err := in.ReadString('\n')
			if at := time.Since(c.since); err != nil || line != want.line || at != want.at {
				t.Errorf("%q at %v, want %q at %v: %v", line, at, want.line, want.at, err)
			}
			if _, err := in.ReadString('\n'); err != nil {
				t.Error(err)
			}
		}
	})
}

// A named connection is somebody's.
type named struct {
	net.Conn
	who string
}

// accepting is a listener with most places, and the connections that it accepts.
func accepting(p *pipes, most int) (b net.Listener, accepted chan *placed) {
	b = Bounded(p, most, time.Now, func(c net.Conn) string { return c.(*named).who })
	accepted = make(chan *placed, 100)
	go func() {
		defer close(accepted)
		for {
			c, err := b.Accept()
			if err != nil {
				return
			}
			accepted <- c.(*placed)
		}
	}()
	return b, accepted
}

// come connects as somebody, when there is a place.
func (p *pipes) come(t *testing.T, who string) {
	mine, theirs := net.Pipe()
	t.Cleanup(func() { mine.Close() })
	p.conns <- &named{theirs, who}
}

// So many connections are open at a time, on which somebody was proved; a further
// one is served when one ends.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		b, accepted := accepting(p, 1)
		p.come(t, "a")
		first := <-accepted
		first.Serves("somebody", false)
		go p.come(t, "b")
		time.Sleep(time.Hour)
		if len(accepted) != 0 {
			t.Fatal("two at a time")
		}
		first.Close()
		first.Close() // gives its place back once
		synctest.Wait()
		if len(accepted) != 1 {
			t.Fatal("the place is not given back")
		}
		(<-accepted).Close()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if _, more := <-accepted; more {
			t.Error("accepts when it is closed")
		}
	})
}

// Whoever has most connections that prove nothing loses the oldest of them, after a
// moment, to others who come; who was proved, or has few, keeps theirs.
func TestOneSourceKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		b, accepted := accepting(p, 8)
		open := map[string][]*placed{}
		dial := func(who string) *placed {
			p.come(t, who)
			c := <-accepted
			open[who] = append(open[who], c)
			return c
		}
		dial("p").Serves("somebody", false)
		dial("v")
		for range 6 {
			dial("a")
		}
		isOpen := func(c *placed) bool { // only who is closed has its place taken
			b.(*bounded).mu.Lock()
			defer b.(*bounded).mu.Unlock()
			return c.in != nil
		}
		began := time.Now()
		dial("b")
		if waited := time.Since(began); waited > 2*patientFor {
			t.Errorf("it waited %v", waited)
		}
		time.Sleep(time.Minute)
		for range 3 { // at once: who comes takes the places of those who have most
			dial("c")
		}
		if isOpen(open["a"][0]) || !isOpen(open["v"][0]) || !isOpen(open["b"][0]) {
			t.Error("somebody else's was closed")
		}
		for range 20 {
			dial("a")
		}
		if !isOpen(open["v"][0]) || !isOpen(open["b"][0]) {
			t.Error("who has few lost them to who has many")
		}
		if err := open["p"][0].SetDeadline(time.Time{}); err != nil {
			t.Errorf("one on which somebody was proved was closed: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		for _, list := range open {
			for _, c := range list {
				c.Close()
			}
		}
		if n := b.(*bounded).unproved.Len(); n != 0 {
			t.Errorf("%d are counted when all are closed", n)
		}
	})
}

// A process that may have few descriptors has few places: a hundred connections that
// never say anything, all of one user's, keep a request of that very user waiting for
// two seconds at most. Control: each is left its time, and none more.
func TestFewPlacesAreGivenUpSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		b, accepted := accepting(p, 6)
		began := time.Now()
		go func() {
			for range 100 {
				p.come(t, "a")
			}
			p.come(t, "request")
		}()
		for range 100 {
			if c := <-accepted; c.Conn.(*named).who != "a" {
				t.Fatal("out of turn")
			}
		}
		(<-accepted).Serves("somebody", false)
		if waited := time.Since(began); waited > 2*time.Second || waited < time.Second {
			t.Errorf("it waited %v", waited)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
