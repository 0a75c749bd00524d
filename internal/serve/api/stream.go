package api

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/serve/service"
)

// A stream is an answer of many pieces, each of which has its time.
type stream struct {
	w        http.ResponseWriter
	c        *http.ResponseController
	patience time.Duration
	now      func() time.Time
}

func (a *responder) stream(w http.ResponseWriter) *stream {
	return &stream{w, http.NewResponseController(w), a.opt.Patience, a.opt.Now}
}

// write sends a piece; a reader that takes longer than the patience is gone.
func (s *stream) write(p []byte) error {
	_ = s.c.SetWriteDeadline(s.now().Add(s.patience)) // not each writer has one
	_, err := s.w.Write(p)
	return err
}

// send sends a piece at once.
func (s *stream) send(p []byte) error {
	if err := s.write(p); err != nil {
		return err
	}
	return s.c.Flush()
}

// end allows what is in the buffer its time.
func (s *stream) end() { _ = s.c.SetWriteDeadline(s.now().Add(s.patience)) }

// A message is one of a stream of events.
type message struct {
	id   uint64 // 0: it has none
	name string
	data []byte // of one line
}

func (m *message) bytes() []byte {
	p := make([]byte, 0, len(m.data)+len(m.name)+48)
	if m.id > 0 {
		p = append(p, "id: "...)
		p = strconv.AppendUint(p, m.id, 10)
		p = append(p, '\n')
	}
	p = append(append(append(p, "event: "...), m.name...), '\n')
	return append(append(append(p, "data: "...), m.data...), "\n\n"...)
}

// follow sends messages as they come, until there are no more, the reader is gone
// or the service ends. Who reads slowly delays nobody else: the next message is
// asked for when the one before is sent.
func (s *server) follow(w http.ResponseWriter, r *http.Request, from func(context.Context) iter.Seq2[message, error],
	last func(context.Context) message,
) error {
	leave, err := s.openStream(service.CallerOf(r.Context()))
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	all := from(ctx) // before the answer begins: what comes then is in it
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	messages := make(chan message)
	failed := make(chan error, 1)
	guard.Go(func() error { return pump(ctx, all, messages) }, func(err error) { failed <- err })
	defer func() {
		cancel()
		for range messages { // until pump has ended
		}
	}()
	out := s.stream(w)
	if out.send([]byte(": follows\n\n")) != nil {
		return nil
	}
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	for {
		var p []byte
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
			p = []byte(": lives\n\n")
		case m, more := <-messages:
			if !more {
				m = s.farewell(ctx, <-failed, last)
				_ = out.send(m.bytes()) // it ends either way
				return nil
			}
			p = m.bytes()
			beat.Reset(s.Heartbeat)
		}
		if out.send(p) != nil {
			return nil // nobody reads
		}
	}
}

// pump hands over messages one by one.
func pump(ctx context.Context, from iter.Seq2[message, error], to chan<- message) error {
	defer close(to)
	for m, err := range from {
		if err != nil {
			return err
		}
		select {
		case to <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// farewell is the last message of a stream.
func (s *server) farewell(ctx context.Context, err error, last func(context.Context) message) message {
	if err == nil {
		return last(ctx)
	}
	var broken *guard.Broken
	if errors.As(err, &broken) {
		s.Log.LogAttrs(ctx, slog.LevelError, "a stream broke", slog.String("what", broken.What),
			slog.String("where", string(broken.Stack)))
	}
	f := failureOf(err)
	data, _ := json.Marshal(failure{Code: f.Code, Text: f.Text}) // strings always have a form
	return message{name: "error", data: data}
}

// resumed is the number behind which a stream goes on: that of the last message
// which its reader has.
func resumed(r *http.Request) (uint64, error) {
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n > math.MaxInt64 {
			return 0, invalid("Last-Event-ID", "must be the id of a message of this stream")
		}
		return n, nil
	}
	return number(r, "after", 0, math.MaxInt64)
}

// getRunEvents follows the records of a run.
func (s *server) getRunEvents(w http.ResponseWriter, r *http.Request, c *service.Caller) error {
	id, err := runID(s, r, c)
	if err != nil {
		return err
	}
	after, err := resumed(r)
	if err != nil {
		return err
	}
	over, err := s.ended(r.Context(), c, id, after)
	if err != nil {
		return err
	}
	if over { // a browser asks again and again, unless it is told so
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return s.follow(w, r, func(ctx context.Context) iter.Seq2[message, error] {
		return func(yield func(message, error) bool) {
			for rec, err := range s.Service.Records(ctx, c, id, after) {
				if !yield(message{rec.RunSeq, rec.Kind, rec.Line}, err) {
					return
				}
			}
		}
	}, func(ctx context.Context) message { return message{name: "end", data: s.final(ctx, c, id)} })
}

// final is the state of a run whose records are over.
func (s *server) final(ctx context.Context, c *service.Caller, id string) []byte {
	var st any = map[string]string{"run_id": id}
	if run, err := s.Service.Run(ctx, c, id); err == nil {
		select { // its last record is there some moments before its report
		case <-run.Done():
		case <-ctx.Done():
		}
		st = run.StateFor(c)
	} else if sum, err := s.summary(ctx, c, id); err == nil {
		st = stateOf(sum, c.Tenant)
	}
	data, _ := json.Marshal(st) // every state has a form
	return data
}

// getEvents follows the life of all runs that the caller may see.
func (s *server) getEvents(w http.ResponseWriter, r *http.Request, c *service.Caller) error {
	after, err := resumed(r)
	if err != nil {
		return err
	}
	return s.follow(w, r, func(ctx context.Context) iter.Seq2[message, error] {
		events := s.Service.Events(ctx, c, after) // those from now on, whenever they are taken
		return func(yield func(message, error) bool) {
			for e, err := range events {
				data, _ := json.Marshal(e) // the same
				if !yield(message{e.ID, e.Name, data}, err) {
					return
				}
			}
		}
	}, func(context.Context) message { return message{name: "end", data: []byte("{}")} })
}
