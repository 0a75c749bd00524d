package service

import (
	"context"
	"encoding/json"
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
	mu    sync.Mutex
	list  [][]byte
	bytes int
	last  bool
	more  chan struct{} // has one element when something is there
}

func newInputs() *inputs { return &inputs{more: make(chan struct{}, 1)} }

// Next implements [launcher.Inputs].
func (in *inputs) Next(ctx context.Context) ([]byte, error) {
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
			return &BusyError{time.Second}
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
