package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"runloop.dev/rlp/internal/record/audit"
)

const (
	putBytes  = 256 << 10 // that are handed over at once
	markBytes = 16 << 20  // after which the cursor is moved
)

// An Export carries records from a log to an output.
type Export struct {
	Encoder Encoder
	Output  Output
	Cursor  *CursorFile // nil: nobody comes back to it
	// Gapless says that no record is left out, so that one which is not there is
	// noticed.
	Gapless bool

	// Every is how many bytes are put before the cursor is moved; 0 stands for 16 MiB.
	Every int

	batch  int // bytes that are put at once; 0 stands for 256 KiB
	buf    []byte
	since  int    // bytes that were put since the cursor was moved
	last   uint64 // the record that was taken last
	count  uint64 // of records
	broken bool   // the output has failed
}

// A GapError says that records are not there to be exported any more.
type GapError struct{ After, Next uint64 }

func (e *GapError) Error() string {
	return fmt.Sprintf("records %d to %d are not in the log any more and were not exported", e.After+1, e.Next-1)
}

// Begin writes the head of an empty output, and a first cursor before it, so
// that whatever happens next is known to be of this export.
func (e *Export) Begin(ctx context.Context) error {
	if e.Cursor != nil {
		e.last = e.Cursor.Seq
		if e.Cursor.Fresh {
			if err := e.mark(); err != nil {
				return err
			}
		}
	}
	if head := e.Encoder.Head(); len(head) > 0 && e.Output.Empty() {
		return e.Output.Put(ctx, head)
	}
	return nil
}

// Pass exports records, which are those after the last that was taken, as far as
// head goes. What it could not read to the end it has exported as far as it is.
func (e *Export) Pass(ctx context.Context, head Head, records iter.Seq2[*audit.Glance, error]) error {
	if e.Cursor != nil {
		e.Cursor.Size, e.Cursor.Root = head.Size, head.Root[:]
	}
	err := e.each(ctx, head, records)
	if e.broken {
		return err
	}
	if err != nil { // of reading: what was read is exported, whoever interrupts
		return errors.Join(err, e.put(context.WithoutCancel(ctx), true), e.mark())
	}
	if err := e.put(ctx, true); err != nil {
		return err
	}
	moved := e.last != head.Size
	e.last = max(e.last, head.Size)
	if e.since > 0 || moved {
		return e.mark()
	}
	return nil
}

// Last is the number of the last record that was exported or passed over.
func (e *Export) Last() uint64 { return e.last }

// Count is how many records were taken.
func (e *Export) Count() uint64 { return e.count }

func (e *Export) each(ctx context.Context, head Head, records iter.Seq2[*audit.Glance, error]) error {
	for g, err := range records {
		switch {
		case err != nil:
			return err
		case g.Seq > head.Size:
			return nil // it is for the next pass
		// what was pruned before the first export is not missed
		case e.Gapless && g.Seq != e.last+1 && (e.last > 0 || e.Cursor != nil && !e.Cursor.Fresh):
			return &GapError{e.last, g.Seq}
		}
		if e.buf, err = e.Encoder.Append(e.buf, g); err != nil {
			return fmt.Errorf("record %d: %w", g.Seq, err)
		}
		e.last = g.Seq
		e.count++
		if len(e.buf) >= cmp.Or(e.batch, putBytes) || e.Encoder.Full() {
			if err := e.put(ctx, e.Encoder.Full()); err != nil {
				return err
			}
		}
		if e.since >= cmp.Or(e.Every, markBytes) {
			if err := e.mark(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Export) put(ctx context.Context, flush bool) error {
	if flush {
		e.buf = e.Encoder.Flush(e.buf)
	}
	if len(e.buf) == 0 {
		return nil
	}
	if err := e.Output.Put(ctx, e.buf); err != nil {
		e.broken = true
		return err
	}
	e.since += len(e.buf)
	e.buf = e.buf[:0]
	return nil
}

// mark moves the cursor to the last record that was taken, once it is safe.
func (e *Export) mark() error {
	place, err := e.Output.Mark()
	e.since = 0
	if err != nil || e.Cursor == nil {
		return err
	}
	e.Cursor.Seq, e.Cursor.Output = e.last, place
	return e.Cursor.save()
}
