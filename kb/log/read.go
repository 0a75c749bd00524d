package log

import (
	"context"
	"fmt"
	"iter"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/wire"
)

// Ingest takes what the journals hold into the log, those of running agents up
// to where they are. What is wrong with a journal is in Damaged.
func (s *Client) Ingest(ctx context.Context) (Ingested, error) {
	var all Ingested
	for {
		done, err := wire.Ask(ctx, s.asker, &ingestRequest{})
		if err != nil {
			return all, fmt.Errorf("taking in journals: %w", err)
		}
		all.Records += done.Records
		all.Runs += done.Runs
		all.Left = done.Left
		all.Damaged = append(all.Damaged, done.Damaged...)
		if all.Left == 0 || ctx.Err() != nil {
			return all, nil
		}
	}
}

// An ingestRequest asks for a step of what [Client.Ingest] does.
type ingestRequest struct{}

func (*ingestRequest) Op() wire.Opcode { return wire.OpIngest }

func (*ingestRequest) Do(ctx context.Context, l *Log) (*Ingested, error) {
	ctx, cancel := context.WithTimeout(ctx, ingestStep)
	defer cancel()
	done, err := l.ingest(ctx)
	return &done, err
}

// Audit returns the records that f asks for, oldest first, after taking in
// what the journals hold, so that every record whose call has returned is
// there. It ends after the first error.
func (s *Client) Audit(ctx context.Context, f Filter) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		codec, err := audit.NewCodec()
		if err == nil {
			err = s.stored(ctx, f, false, func(p []byte) (bool, error) {
				rec, err := codec.Decode(p)
				return err == nil && yield(rec, nil), err
			})
		}
		if err != nil {
			yield(audit.Record{}, fmt.Errorf("reading the audit log: %w", err))
		}
	}
}

// Lines is Audit in the exported form: each record's line, without a line end,
// which is what its leaf in the log's tree is made of. A line is valid until
// the next.
func (s *Client) Lines(ctx context.Context, f Filter) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		transcoder, err := audit.NewTranscoder()
		var line []byte
		if err == nil {
			err = s.stored(ctx, f, false, func(p []byte) (bool, error) {
				line, err = transcoder.AppendLine(line[:0], p)
				return err == nil && yield(line, nil), err
			})
		}
		if err != nil {
			yield(nil, fmt.Errorf("reading the audit log: %w", err))
		}
	}
}

// Glances is Audit for who asks the same of very many records: what it yields
// is valid until the next, and was not decoded whole.
func (s *Client) Glances(ctx context.Context, f Filter) iter.Seq2[*audit.Glance, error] {
	return func(yield func(*audit.Glance, error) bool) {
		var g audit.Glance
		err := s.stored(ctx, f, true, func(p []byte) (bool, error) {
			err := g.Read(p)
			return err == nil && yield(&g, nil), err
		})
		if err != nil {
			yield(nil, fmt.Errorf("reading the audit log: %w", err))
		}
	}
}

// stored calls visit with the stored form of the records that f asks for, until
// it says no.
func (s *Client) stored(ctx context.Context, f Filter, glance bool, visit func(p []byte) (bool, error)) error {
	if err := f.Check(); err != nil {
		return err
	}
	if _, err := s.Ingest(ctx); err != nil {
		return err
	}
	q, err := s.begin(ctx, f)
	if err != nil || q == nil {
		return err
	}
	q.Bare = glance
	for {
		r, err := wire.Ask(ctx, s.asker, q)
		if err != nil {
			return err
		}
		for _, p := range r.Records {
			more, err := visit(p)
			if err != nil {
				return fmt.Errorf("%w: %w", wire.ErrDamaged, err)
			}
			if !more {
				return nil
			}
		}
		if !r.More {
			return nil
		}
		if f.Search != nil && f.Run == "" && f.Limit == 0 && !f.Search.Looked(r.Next-1) {
			return nil
		}
		q.From = r.Next
	}
}

// begin finds the first page of an answer; nil: there is nothing to answer.
func (s *Client) begin(ctx context.Context, f Filter) (*pageRequest, error) {
	q := &seekRequest{Filter: f}
	found := uint64(0)
	for {
		r, err := wire.Ask(ctx, s.asker, q)
		if err != nil {
			return nil, err
		}
		if r.From != 0 {
			found = r.From
		}
		if !r.More {
			if found == 0 {
				return nil, nil
			}
			f.Limit = 0
			return &pageRequest{Filter: f, From: found, UpTo: r.UpTo}, nil
		}
		q.From, q.UpTo, q.Filter.Limit = r.Next, r.UpTo, r.Left
	}
}
