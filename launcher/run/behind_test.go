package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

// gets is a module that reads notes/key, once.
const gets = "\x00asm\x01\x00\x00\x00" +
	"\x01\x0e\x02\x60\x06\x7f\x7f\x7f\x7f\x7f\x7f\x01\x7e\x60\x00\x00" +
	"\x02\x15\x01\x0arunloop_v1\x06kb_get\x00\x00" +
	"\x03\x02\x01\x01\x05\x03\x01\x00\x01" +
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x01" +
	"\x0a\x15\x01\x13\x00\x41\x00\x41\x05\x41\x05\x41\x03\x41\xc0\x00\x41\xc0\x00\x10\x00\x1a\x0b" +
	"\x0b\x0e\x01\x00\x41\x00\x0b\x08noteskey"

// A slowKB answers when it is let go, whatever its context says. Its answer
// marks the run, which is another record.
type slowKB struct {
	hostcalls.KB
	asked, let chan struct{}
}

func (s *slowKB) Get(context.Context, string, string) (hostcalls.KBValue, error) {
	close(s.asked)
	<-s.let
	return hostcalls.KBValue{Bytes: []byte("from outside")}, nil
}

// letting lets the store go when the end is about to be recorded.
type letting struct {
	Journal
	at   int // 0: before the end, 1: before it is on disk, 2: before the journal closes
	done func()
}

func (j *letting) let(at int) {
	if at == j.at {
		j.done()
	}
}

func (j *letting) Event(e *audit.Event) error {
	if audit.Ends(e.Kind) {
		j.let(0)
	}
	return j.Journal.Event(e)
}
func (j *letting) Sync() error  { j.let(1); return j.Journal.Sync() }
func (j *letting) Close() error { j.let(2); return j.Journal.Close() }

// A call that was left behind and comes back while the run is recorded as ended
// writes nothing and races with nobody, and each journal is whole. This many are
// forced, at each of three moments.
func TestCallsThatWereLeftBehindRecordNothingMore(t *testing.T) {
	runs := 90
	if testing.Short() {
		runs = 12
	}
	dir := filepath.Join(t.TempDir(), "journal")
	lib := guest.NewLibrary(0)
	t.Cleanup(func() { lib.Close() })
	clock := journal.NewClock(nil)
	t.Cleanup(clock.Stop)
	var all sync.WaitGroup
	few := make(chan struct{}, 15)
	for i := range runs {
		few <- struct{}{}
		all.Go(func() {
			defer func() { <-few }()
			leaveBehind(t, dir, lib, clock, i)
		})
	}
	all.Wait()
}

func leaveBehind(t *testing.T, dir string, lib *guest.Library, clock *journal.Clock, i int) {
	kb := &slowKB{asked: make(chan struct{}), let: make(chan struct{})}
	s := specOf(t, nil, "kb:read:notes", "kb:read:contacts")
	s.RunID, s.Module, s.Library = fmt.Sprintf("0190b1d2-7c4e-7a55-8f00-%012d", i), []byte(gets), lib
	s.Components.KB, s.Components.Masks, s.Taint.Floor = kb, spyMasks{}, &caps.Layer{
		Name: "floor",
		Deny: []caps.Entry{entryOf(t, "kb:read:contacts")},
	}
	for range 9 { // so that it is given up soon
		s.Above = budget.New(caps.Limits{}, s.Above)
	}
	s.OpenJournal = func(h audit.Head) (Journal, error) {
		j, err := journal.Create(journal.Options{Dir: dir, Head: h, Clock: clock})
		if err != nil {
			return nil, err
		}
		return &letting{j, i % 3, sync.OnceFunc(func() { close(kb.let) })}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-kb.asked; cancel() }()
	r := Launch(ctx, s)
	if r.Outcome != Cancelled || len(r.Warnings) != 1 {
		t.Errorf("run %d: %s, %s, %q", i, r.Outcome, r.Message, r.Warnings)
	}
	if end, err := lastOf(dir, s.RunID); err != nil || end.Event == nil || end.Event.Outcome != string(Cancelled) {
		t.Errorf("run %d: the journal ends with %+v, %v", i, end, err)
	}
}

// lastOf reads a journal to its end.
func lastOf(dir, run string) (last audit.Record, err error) {
	r, err := journal.OpenReader(dir, run, journal.State{})
	if err != nil {
		return last, err
	}
	defer r.Close()
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			torn, err := r.Tail()
			if torn && err == nil {
				err = errors.New("its end is torn")
			}
			return last, err
		}
		if err != nil {
			return last, err
		}
		last = *rec
	}
}
