package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// An opened stream goes on until its reader goes away.
type opened struct {
	*httptest.ResponseRecorder
	begun, over chan struct{}
	once        sync.Once
	gone        context.CancelFunc
}

func (o *opened) Flush() { o.once.Do(func() { close(o.begun) }) }

// open asks for a stream, and returns when it is answered. Where that was with no
// stream, all of it is over.
func open(t testing.TB, h http.Handler, a ask) *opened {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	o := &opened{
		ResponseRecorder: httptest.NewRecorder(), begun: make(chan struct{}), over: make(chan struct{}),
		gone: cancel,
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, a.path, nil)
	for _, line := range a.head {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	go func() {
		defer close(o.over)
		h.ServeHTTP(o, r)
	}()
	t.Cleanup(o.leave)
	select {
	case <-o.begun:
	case <-o.over:
	}
	return o
}

// leave goes away, and waits until that was noticed.
func (o *opened) leave() {
	o.gone()
	<-o.over
}

// One caller has a share of the streams that are open at a time, and nobody has
// more than there are; one that ends makes room.
func TestStreamsAreShared(t *testing.T) {
	h := serve(t, &host{}, Options{Streams: 3 * partOfStreams}, service.Options{}).Config.Handler
	as := func(who string) *opened { return open(t, h, ask{path: "/events", head: []string{"X-Who: " + who}}) }
	var mine []*opened
	for i := range 3 {
		mine = append(mine, as(""))
		if mine[i].Code != http.StatusOK {
			t.Fatal(i, mine[i].Code)
		}
	}
	if o := as(""); o.Code != http.StatusTooManyRequests || o.Header().Get("Retry-After") == "" ||
		!strings.Contains(o.Body.String(), "3 streams of this caller") {
		t.Error(o.Code, o.Body)
	}
	if o := as("reader"); o.Code != http.StatusOK {
		t.Error("another caller:", o.Code, o.Body)
	}
	mine[1].leave()
	if o := as(""); o.Code != http.StatusOK {
		t.Error("one has ended:", o.Code, o.Body)
	}
}

// Whoever reads no answers loses those that are more than their share, each with
// its connection; others lose nothing, and what they are told is whole.
func TestAnswersThatNobodyReads(t *testing.T) {
	const size, share = 1 << 20, 8 // answers of a MiB, eight of them a caller
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, size))
	})
	o := Options{Console: page, Held: share * partOfHeld * size}
	within(t, &host{}, o, func(t *testing.T, p *pipes) {
		ask := func(who string) *piped {
			return p.dial(t, "GET /page HTTP/1.1\r\nHost: x\r\nX-Who: "+who+"\r\n\r\n")
		}
		var all []*piped
		for range 4 * share {
			all = append(all, ask("reader"))
			synctest.Wait() // it has its share, or is cut off
		}
		cut := 0
		for _, c := range all[share:] {
			if _, err := c.in.ReadByte(); err != nil {
				cut++
			}
		}
		if cut != 3*share {
			t.Errorf("%d of %d were cut off", cut, 3*share)
		}
		if resp, said, _ := ask("").answer(t); resp.StatusCode != http.StatusOK || len(said) != size {
			t.Errorf("another caller: %s, %d bytes", resp.Status, len(said))
		}
		for i, c := range all[:share] {
			if resp, said, _ := c.answer(t); resp.StatusCode != http.StatusOK || len(said) != size {
				t.Errorf("answer %d of its share: %s, %d bytes", i, resp.Status, len(said))
			}
		}
		if resp, said, _ := ask("reader").answer(t); resp.StatusCode != http.StatusOK || len(said) != size {
			t.Errorf("when it has read: %s, %d bytes", resp.Status, len(said))
		}
	})
}

// Bodies that come slowly are held to the same share.
func TestBodiesThatDoNotCome(t *testing.T) {
	const share = 4
	within(t, &host{}, Options{Held: share * partOfHeld * smallBody}, func(t *testing.T, p *pipes) {
		head := func(who string) string {
			return fmt.Sprintf("POST /run HTTP/1.1\r\nHost: x\r\nX-Who: %s\r\nContent-Length: %d\r\n\r\n", who, smallBody)
		}
		for range share {
			p.dial(t, head("launcher"))
		}
		synctest.Wait()
		resp, said, _ := p.dial(t, head("launcher")).answer(t)
		if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || !resp.Close {
			t.Errorf("one more: %s %s", resp.Status, said)
		}
		body := `{"agent":"a"}`
		if resp, said, _ := p.dial(t, head(""), body+strings.Repeat(" ",
			smallBody-len(body))).answer(t); resp.StatusCode != http.StatusOK {
			t.Errorf("another caller: %s %s", resp.Status, said)
		}
		time.Sleep(2 * time.Minute) // none of the four came
		if resp, said, _ := p.dial(t, head("launcher"), body+strings.Repeat(" ",
			smallBody-len(body))).answer(t); resp.StatusCode != http.StatusOK {
			t.Errorf("when they were given up: %s %s", resp.Status, said)
		}
		time.Sleep(time.Second) // the server closes what it refused
	})
}
