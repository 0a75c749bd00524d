package service_test

import (
	"context"
	"errors"
	"testing"

	"runloop.dev/rlp/internal/serve/service"
)

// What is a caller's own is found by what it proved itself by and not by its name:
// a new token that is called as a revoked one was has nothing of it, and a name
// that looks like an ID is none. The same token again is the control.
func TestNamesOwnNothing(t *testing.T) {
	p := newStage()
	s := serve(&host{launch: p.launch}, service.Options{Workers: 4, Queue: 10})
	made := func(id, name string) *service.Caller {
		c := may(name, "t", service.Launch)
		c.ID = id
		return c
	}
	first, again := made("token:aaaa", "token:ci"), made("token:aaaa", "token:renamed")
	q := turns("a")
	r, err := s.Submit(t.Context(), first, q, "key")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*service.Caller{
		"of its name":       made("token:bbbb", "token:ci"),
		"named as its ID":   made("", "token:aaaa"),
		"of its name alone": made("", "token:ci"),
	} {
		if err := s.Cancel(t.Context(), c, r.ID()); !errors.Is(err, service.ErrNotFound) {
			t.Errorf("%s cancels: %v", name, err)
		}
		if err := s.Send(t.Context(), c, r.ID(), []byte(`1`), false); !errors.Is(err, service.ErrNotFound) {
			t.Errorf("%s sends: %v", name, err)
		}
		if list := s.Runs(t.Context(), c); len(list) != 0 {
			t.Errorf("%s sees %+v", name, list)
		}
		other, err := s.Submit(t.Context(), c, ask("b"), "key")
		if err != nil || other.ID() == r.ID() {
			t.Errorf("%s asks again by the key of another: %v", name, err)
		}
	}
	if same, err := s.Submit(t.Context(), again, q, "key"); err != nil || same.ID() != r.ID() {
		t.Errorf("the same token asks again: %v", err)
	}
	if err := s.Send(t.Context(), again, r.ID(), []byte(`1`), false); err != nil {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for e := range s.Events(ctx, again, 1) {
		if e.State.RunID != r.ID() {
			t.Errorf("is told of a run that is another's: %+v", e)
		}
		if e.Name == "run.ended" {
			break
		}
		if e.Name == "run.started" {
			if err := s.Cancel(t.Context(), again, r.ID()); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(p.release)
}

// A caller's runs wait behind its own, whatever it is called.
func TestTurnsInTheQueueAreOfCallersAndNotOfNames(t *testing.T) {
	p := newStage()
	s := serve(&host{launch: p.launch}, service.Options{Workers: 1, Queue: 100})
	submit(t, s, may("x", "t0", service.Launch), ask("first"))
	<-p.begun
	one, two := may("token:ci", "t", service.Launch), may("token:ci", "t", service.Launch)
	one.ID, two.ID = "token:aaaa", "token:bbbb"
	var last *service.Run
	for _, agent := range []string{"one0", "one1"} {
		submit(t, s, one, ask(agent))
	}
	for _, agent := range []string{"two0", "two1"} {
		last = submit(t, s, two, ask(agent))
	}
	close(p.release)
	ended(t, last)
	if got, want := p.all(), "first one0 two0 one1 two1"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
}
