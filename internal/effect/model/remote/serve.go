package remote

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"

	"runloop.dev/rlp/internal/effect/model"
)

// maxCalls is how many calls a child works on at a time; more are refused.
const maxCalls = 64

// A server is the child's side.
type server struct {
	backend model.Backend
	calls   sync.WaitGroup
	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	running map[uint64]context.CancelFunc
}

// Serve answers what comes in until it ends, or something comes that is no ask;
// then every call is cancelled. The end of in is a good end.
func Serve(ctx context.Context, in io.Reader, out io.Writer, backend model.Backend) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{backend: backend, out: out, running: map[uint64]context.CancelFunc{}}
	defer s.calls.Wait()
	defer cancel()
	buffered := bufio.NewReader(in)
	for {
		var a ask
		if err := decode(buffered, &a); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := s.take(ctx, a); err != nil {
			return err
		}
	}
}

var errAsk = errors.New("an ask that asks nothing, or twice")

func (s *server) take(ctx context.Context, a ask) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop, known := s.running[a.ID]
	switch {
	case a.Op == opCancel:
		if known { // else it is answered already
			stop()
		}
		return nil
	case known || a.Target == nil || (a.Op == opComplete) != (a.Complete != nil) || (a.Op == opEmbed) != (a.Embed != nil),
		a.Op != opComplete && a.Op != opEmbed:
		return errAsk
	case len(s.running) >= maxCalls:
		s.calls.Go(func() { s.answer(reply{ID: a.ID, Failure: never("too many calls at a time")}) })
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.Target.open().Timeout)
	s.running[a.ID] = cancel
	s.calls.Go(func() {
		r := s.do(ctx, a)
		cancel()
		s.mu.Lock()
		delete(s.running, a.ID)
		s.mu.Unlock()
		s.answer(r)
	})
	return nil
}

func (s *server) do(ctx context.Context, a ask) reply {
	r := reply{ID: a.ID}
	var err error
	if a.Op == opComplete {
		var c model.Completion
		if a.Parts {
			a.Complete.Emit = func(p model.Piece) { s.answer(reply{ID: a.ID, Piece: &p}) }
		}
		if c, err = s.backend.Complete(ctx, a.Target.open(), a.Complete); err == nil {
			r.Completion = &c
		}
	} else {
		var v model.Vectors
		if v, err = s.backend.Embed(ctx, a.Target.open(), a.Embed); err == nil {
			r.Vectors, err = pack(v)
		}
	}
	if err != nil && !errors.As(err, &r.Failure) {
		r.Failure = &model.Failure{Kind: model.Unavailable, Charge: model.ChargeReserved}
	}
	return r
}

func (s *server) answer(r reply) {
	frame, err := encode(r)
	if err != nil {
		frame, err = encode(reply{ID: r.ID, Failure: &model.Failure{Kind: model.TooLarge, Charge: model.ChargeReserved}})
	}
	if err != nil {
		return
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	_, _ = s.out.Write(frame)
}
