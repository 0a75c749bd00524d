package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"runloop.dev/rlp/internal/service"
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
	o := &opened{ResponseRecorder: httptest.NewRecorder(), begun: make(chan struct{}), over: make(chan struct{}), gone: cancel}
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
	h := serve(t, &host{}, Options{Streams: 3 * partOfCallers}, service.Options{}).Config.Handler
	as := func(who string) *opened { return open(t, h, ask{path: "/events", head: []string{"X-Who: " + who}}) }
	var mine []*opened
	for i := range 3 {
		mine = append(mine, as(""))
		if mine[i].Code != http.StatusOK {
			t.Fatal(i, mine[i].Code)
		}
	}
	if o := as(""); o.Code != http.StatusTooManyRequests || o.Header().Get("Retry-After") == "" || !strings.Contains(o.Body.String(), "3 streams of this caller") {
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

// All together have no more than there are.
func TestStreamsAreBounded(t *testing.T) {
	s := sharesOf(2)
	var leave []func()
	for i := range 2 {
		l, err := s.take(&service.Caller{Tenant: "default", Name: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, l)
	}
	third := &service.Caller{Tenant: "default", Name: "third"}
	if _, err := s.take(third); failureOf(err).Status != http.StatusTooManyRequests {
		t.Error(err)
	}
	leave[0]()
	if _, err := s.take(third); err != nil {
		t.Error(err)
	}
	leave[1]()
	if s.all != 1 || len(s.by) != 1 {
		t.Errorf("%+v", s)
	}
}
