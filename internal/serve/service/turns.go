package service

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	mostInputs     = 64      // that wait for their turn
	mostInputBytes = 8 << 20 // of those
)

// inputs are those of a run's turns after the first, as they are sent.
type inputs struct {
	idle time.Duration // how long one is waited for
	over func()        // is called when none came for so long

	mu    sync.Mutex
	list  [][]byte
	bytes int
	last  bool
	more  chan struct{} // has one element when something is there
}

func newInputs(idle time.Duration, over func()) *inputs {
	return &inputs{idle: idle, over: over, more: make(chan struct{}, 1)}
}

// Next implements [launcher.Inputs]. Who waits for too long is ended: a run that
// waits holds its worker, and none of its own time passes.
func (in *inputs) Next(ctx context.Context) ([]byte, error) {
	idle := time.AfterFunc(in.idle, in.over)
	defer idle.Stop()
	for {
		if p, over, some := in.take(); some {
			return p, nil
		} else if over {
			return nil, io.EOF
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-in.more:
		}
	}
}

func (in *inputs) take() (p []byte, over, some bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.list) == 0 {
		return nil, in.last, false
	}
	p = in.list[0]
	in.list[0] = nil
	in.list = in.list[1:]
	in.bytes -= len(p)
	return p, false, true
}

// put adds an input; nil: there is none, and this is about the last one.
func (in *inputs) put(p []byte, last bool) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.last {
		return FieldErrors{{"input", "the last input of this run was sent before; begin another run"}}
	}
	if p != nil {
		if len(in.list) >= mostInputs || len(in.list) > 0 && in.bytes+len(p) > mostInputBytes {
			return &BusyError{RetryAfter: time.Second}
		}
		in.list = append(in.list, p)
		in.bytes += len(p)
	}
	in.last = last
	select {
	case in.more <- struct{}{}:
	default:
	}
	return nil
}

// end forgets what nobody will take any more.
func (in *inputs) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.list, in.bytes, in.last = nil, 0, true
}

// turning is how many runs that take turns there are: what waits for an input
// holds a worker, for as long as its caller likes.
type turning struct {
	all int
	of  map[string]int // by tenant and caller
}

func (t *turning) begin(r *Run) {
	if t.of == nil {
		t.of = map[string]int{}
	}
	t.all++
	t.of[r.caller.Key()]++
}

func (t *turning) end(r *Run) {
	t.all--
	if t.of[r.caller.Key()]--; t.of[r.caller.Key()] == 0 {
		delete(t.of, r.caller.Key())
	}
}

// mayTurn refuses a run that takes turns where its caller has its share of such,
// half the workers, or where no worker would be left for runs that take none. The
// caller holds the lock.
func (s *Service) mayTurn(r *Run) error {
	one, all := s.opt.Workers/2, s.opt.Workers-1
	if r.caller.Can(Operate) { // who can cancel any
		one, all = max(one, 1), max(all, 1)
	}
	switch {
	case one == 0:
		return FieldErrors{{"turns", "a run that takes turns holds a worker while it waits, and this service has one; " +
			"leave turns out, or ask the operator for more of [serve] workers"}}
	case s.turning.of[r.caller.Key()] >= one:
		return &BusyError{
			RetryAfter: latest,
			Why: fmt.Sprintf("this caller has %d runs that take turns, and may have no more: each holds one of %d workers "+
				"([serve] workers in config.toml); end one by its last input, or cancel it", one, s.opt.Workers),
		}
	case s.turning.all >= all:
		return &BusyError{
			RetryAfter: latest,
			Why: fmt.Sprintf("there are %d runs that take turns, and the last worker is for others; ask again in %s, or leave "+
				"turns out", all, latest),
		}
	}
	return nil
}

// Send gives a run the input of its next turn. With last no other follows; a last
// call without an input only says so. It takes Launch for one's own runs and
// Operate for others'. While too many inputs wait it is a [BusyError].
func (s *Service) Send(_ context.Context, c *Caller, id string, input json.RawMessage, last bool) error {
	r, err := s.acted(c, id)
	if err != nil {
		return err
	}
	st := r.State()
	switch {
	case st.Ended():
		return FieldErrors{{"run_id", "run " + id + " has ended and takes no input"}}
	case r.inputs == nil:
		return FieldErrors{{"input", `the run takes one input; one that takes more is begun with "turns": true`}}
	case input == nil && !last:
		return FieldErrors{{"input", `give a JSON document, or "last": true`}}
	}
	return r.inputs.put(input, last)
}
