package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// placesOf is a listener with most places, and what connects to it.
func placesOf(t *testing.T, most int) (b *bounded, dial func() *placed) {
	p := newPipes()
	l, accepted := accepting(p, most)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.(*bounded), func() *placed {
		p.come(t, "somebody")
		c := <-accepted
		t.Cleanup(func() { c.Close() })
		return c
	}
}

// isClosed reports whether a connection has lost its place.
func isClosed(p *placed) bool {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return p.in == nil && p.whose == nil
}

// One caller has its share. Over that its own longest idle connection gives way; if
// none is idle, the newest is not served. Who is on it is who was proved last.
func TestConnectionsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dial := placesOf(t, 32) // four of a caller, 28 of all who are proved, 16 of the operator
		var mine []*placed
		for i := range 4 {
			mine = append(mine, dial())
			if !mine[i].Serves("a", false) {
				t.Fatal(i)
			}
		}
		if dial().Serves("a", false) {
			t.Error("a fifth is served, and none of the four is idle")
		}
		if !mine[0].Serves("a", false) || !dial().Serves("b", false) {
			t.Error("one that it has, or another's, is not served")
		}
		ConnState(mine[2], http.StateIdle)
		ConnState(struct{ net.Conn }{mine[0]}, http.StateIdle) // not known to be one
		ConnState(mine[1], http.StateIdle)
		ConnState(mine[1], http.StateActive)
		fifth := dial()
		if !fifth.Serves("a", false) || !isClosed(mine[2]) || isClosed(mine[0]) || isClosed(mine[1]) {
			t.Error("the longest idle did not give way, or another did")
		}
		if mine[2].Serves("a", false) {
			t.Error("one that is closed is served")
		}
		if !fifth.Serves("c", false) || !dial().Serves("a", false) || isClosed(mine[1]) {
			t.Error("one that another uses now is counted still")
		}
		for range 16 {
			if !dial().Serves("operator", true) {
				t.Fatal("the operator has a half")
			}
		}
		if dial().Serves("operator", true) {
			t.Error("the operator has more than a half")
		}
		if b.proved != 22 {
			t.Errorf("%d are counted", b.proved)
		}
	})
}

// All who were proved leave places to others, however many they are: who comes then
// gets the longest idle of whoever has most, or is not served, and is heard.
func TestProvedConnectionsLeaveAReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dial := placesOf(t, 32)
		var all []*placed
		for i := range 28 {
			c := dial()
			if !c.Serves(string(rune('a'+i/4)), false) {
				t.Fatal(i)
			}
			all = append(all, c)
		}
		began := time.Now()
		if dial().Serves("x", false) {
			t.Error("one more than all may is served")
		}
		all[5].Close() // of b, which has fewer then
		if !dial().Serves("x", false) {
			t.Error("what was given back is not there")
		}
		all[6].rests()
		all[9].rests()
		if y := dial(); !y.Serves("y", false) || !isClosed(all[9]) || isClosed(all[6]) {
			t.Error("not the idle one of who has most gave way")
		}
		for range 100 { // who is not proved is accepted, whatever others hold
			dial()
		}
		if took := time.Since(began); took > 100*time.Second/8 {
			t.Errorf("it took %v", took)
		}
		for _, c := range all {
			c.Close()
		}
		if len(b.callers) != 2 || b.proved != 2 {
			t.Errorf("%d callers, %d connections are counted", len(b.callers), b.proved)
		}
	})
}

// Few places are shared too: nobody has all of them.
func TestFewPlacesAreShared(t *testing.T) {
	for most, want := range map[int][3]int{
		2: {1, 1, 1}, 6: {2, 3, 5}, 8: {2, 4, 7}, 96: {12, 48, 84},
		4096: {512, 2048, 3584},
	} {
		b := Bounded(newPipes(), most, time.Now, nil).(*bounded)
		if got := [3]int{b.share(false), b.share(true), b.mostProved}; got != want {
			t.Errorf("of %d: %v, want %v", most, got, want)
		}
	}
}

// connectedTo puts a connection's place into the context of its requests.
func connectedTo(l net.Listener) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, l, c) }
}

// Over HTTP: a caller that holds its share of streams, or of idle connections, keeps
// neither another caller nor /healthz waiting.
func TestOneCallerKeepsNobodyOut(t *testing.T) {
	for _, path := range []string{"/events", "/runs"} {
		synctest.Test(t, func(t *testing.T) {
			p := newPipes()
			l := Bounded(p, 32, time.Now, func(net.Conn) string { return "everybody" })
			handler, _ := handlerOf(&host{}, Options{}, service.Options{})
			doors := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				who := r.Header.Get("X-Who")
				switch place := r.Context().Value(l).(*placed); {
				case who == "nobody":
					handler.ServeHTTP(w, r)
				case place.Serves(who, false):
					handler.ServeHTTP(w, r)
				default:
					w.Header().Set("Connection", "close")
					w.WriteHeader(http.StatusTooManyRequests)
				}
			})
			server := &http.Server{Handler: doors, ConnState: ConnState, ConnContext: connectedTo(l)}
			over := make(chan struct{})
			go func() { defer close(over); _ = server.Serve(l) }()
			ask := func(path, who string) (int, *piped) {
				c := p.dial(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\nX-Who: "+who+"\r\n\r\n")
				resp, err := http.ReadResponse(c.in, nil)
				if err != nil {
					t.Fatal(err)
				}
				if resp.ContentLength > 0 {
					_, _ = io.CopyN(io.Discard, resp.Body, resp.ContentLength)
				}
				synctest.Wait()
				return resp.StatusCode, c
			}
			refused := 0
			for range 100 {
				if code, _ := ask(path, "reader"); code == http.StatusTooManyRequests {
					refused++
				}
			}
			if want := map[string]int{"/events": 96, "/runs": 0}[path]; refused != want {
				t.Errorf("%s: %d were refused, want %d", path, refused, want)
			}
			began := time.Now()
			for _, other := range [][2]string{{"/runs", ""}, {"/healthz", "nobody"}} {
				if code, _ := ask(other[0], other[1]); code != http.StatusOK || time.Since(began) > patientFor {
					t.Errorf("while %s are held, %s: %d after %v", path, other[0], code, time.Since(began))
				}
			}
			server.Close()
			<-over
		})
	}
}

// A connection on which nobody may, or no more, is closed.
func TestRefusedConnectionsAreClosed(t *testing.T) {
	for status, want := range map[int]bool{
		http.StatusUnauthorized: true, http.StatusTooManyRequests: true,
		http.StatusOK: false, http.StatusForbidden: false,
	} {
		page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		within(t, &host{}, Options{Console: page}, func(t *testing.T, p *pipes) {
			c := p.dial(t, "GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
			resp, _, _ := c.answer(t)
			if resp.StatusCode != status || resp.Close != want {
				t.Errorf("%d: %d, closed: %v", status, resp.StatusCode, resp.Close)
			}
			if want {
				if _, err := c.in.ReadByte(); err != io.EOF {
					t.Errorf("%d: its connection is open: %v", status, err)
				}
			}
		})
	}
}
