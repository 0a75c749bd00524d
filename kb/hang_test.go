package kb

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/kb/wire"
)

// hanging is a store whose database does not open until it is told to, and how many
// have begun to open it.
func hanging(t *testing.T, o Options) (s *Store, begun chan struct{}, goOn chan error) {
	t.Helper()
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s, begun, goOn = newStore(o), make(chan struct{}, 1), make(chan error)
	s.open = func(o Options, l layout) (*engine, error) {
		begun <- struct{}{}
		if err := <-goOn; err != nil {
			return nil, err
		}
		return newEngine(o, l)
	}
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	return s, begun, goOn
}

// A database that does not open is answered for in its time, and nobody else begins
// to open it until the first is through with it.
func TestADatabaseThatHangsIsAnsweredFor(t *testing.T) {
	o := Options{Home: filepath.Join(t.TempDir(), "home")}
	synctest.Test(t, func(t *testing.T) {
		s, begun, goOn := hanging(t, o)
		since := time.Now()
		_, err := s.find(t.Context(), nil)
		if took := time.Since(since); !errors.Is(err, errHangs) || took != s.opt.Wait {
			t.Fatal(err, took)
		}
		if !errors.Is(err, wire.ErrUnavailable) {
			t.Error(err)
		}
		<-begun
		other, begun, goOnOther := hanging(t, o)
		if _, err := other.find(t.Context(), nil); !errors.Is(err, wire.ErrUnavailable) || len(begun) != 0 {
			t.Error("while the first is at it:", err, len(begun))
		}
		goOn <- wire.ErrUnavailable
		synctest.Wait()
		go func() { goOnOther <- wire.ErrClosed }()
		if _, err := other.find(t.Context(), nil); len(begun) != 1 || !errors.Is(err, wire.ErrClosed) {
			t.Error("control: the lock was given up:", err, len(begun))
		}
	})
}

// One that opens after all is closed again, and the next one gets it.
func TestADatabaseThatOpensTooLateIsClosed(t *testing.T) {
	o := Options{Home: filepath.Join(t.TempDir(), "home")}
	s, begun, goOn := hanging(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := s.find(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	goOn <- nil
	next, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !next.Owner() {
		t.Error("nobody owns it")
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}
