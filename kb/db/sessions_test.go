package db

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/kb/wire"
)

type view struct{ discarded int }

func (v *view) Discard() { v.discarded++ }

// A session is read page by page, by one at a time; so many are open, and one that
// nobody asks to go on is given up, once.
func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sessions
		views := make([]*view, maxSessions)
		for i := range views {
			id, err := s.Begin("tests")
			if err != nil {
				t.Fatal(err)
			}
			views[i] = &view{}
			s.Put(id, 0, views[i])
		}
		if _, err := s.Begin("tests"); !errors.Is(err, wire.ErrUnavailable) {
			t.Errorf("one more: %v", err)
		}
		for _, c := range []struct{ id, page uint64 }{{1, 0}, {1, 2}, {9, 1}} {
			if _, there := s.Take(c.id, c.page); there {
				t.Errorf("page %d of %d is given out", c.page, c.id)
			}
		}
		got, there := s.Take(1, 1)
		if !there || got != View(views[0]) {
			t.Fatal(got, there)
		}
		if _, there := s.Take(1, 1); there {
			t.Error("two have one session")
		}
		time.Sleep(keepSession)
		s.Put(1, 1, got)
		time.Sleep(time.Second)
		if _, there := s.Take(2, 1); there {
			t.Error("it is read after it is over")
		}
		if _, err := s.Begin("tests"); err != nil {
			t.Error(err)
		}
		if views[0].discarded != 0 || views[1].discarded != 1 {
			t.Errorf("%d, %d", views[0].discarded, views[1].discarded)
		}
		s.EndAll()
		if views[0].discarded != 1 || views[1].discarded != 1 {
			t.Errorf("at the end: %d, %d", views[0].discarded, views[1].discarded)
		}
	})
}
