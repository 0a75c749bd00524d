package kb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/log"
)

// tailEvery is how often journals are looked at by who follows them.
const tailEvery = 40 * time.Millisecond

// Tail follows the journals of a tenant and returns the kept records that f
// asks for as they are made, until ctx ends; it needs no store and disturbs no
// writer. It begins now, or, when f names a run or a time, with what the
// journals still hold of it. The Seq of its records is 0: they get their
// number when they enter the log. Limit is not used.
func Tail(ctx context.Context, o Options, f log.Filter) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		if err := tail(ctx, o, f, yield); err != nil {
			yield(audit.Record{}, fmt.Errorf("following the audit log: %w", err))
		}
	}
}

// Tail is the package's Tail on this store's journals.
func (s *Store) Tail(ctx context.Context, f log.Filter) iter.Seq2[audit.Record, error] {
	return Tail(ctx, s.opt, f)
}

// A follower is where Tail is in each journal.
type follower struct {
	dir     string
	filter  log.Filter
	readers map[string]*journal.Reader // nil: not followed any more
	found   []*audit.Record            // and not yet returned
}

func tail(ctx context.Context, o Options, f log.Filter, yield func(audit.Record, error) bool) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if err := f.Check(); err != nil {
		return err
	}
	fo := &follower{dir: o.layout().journal, filter: f, readers: map[string]*journal.Reader{}}
	defer fo.close()
	if err := fo.look(); err != nil {
		return err
	}
	if f.Run == "" && f.SinceMS == 0 {
		fo.found = nil
	}
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for {
		slices.SortStableFunc(fo.found, func(a, b *audit.Record) int { return a.Time.Compare(b.Time) })
		for _, r := range fo.found {
			if !yield(*r, nil) {
				return nil
			}
		}
		fo.found = fo.found[:0]
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := fo.look(); err != nil {
			return err
		}
	}
}

func (fo *follower) close() {
	for _, r := range fo.readers {
		if r != nil {
			r.Close()
		}
	}
}

// look finds what is new in the journals that are there, and forgets those
// that are not.
func (fo *follower) look() error {
	if run := fo.filter.Run; run != "" {
		if !journal.ValidRun(run) {
			return nil // none is named so
		}
		return fo.read(run)
	}
	names, err := journal.Names(fo.dir)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(names))
	for _, run := range names {
		there[run] = true
		if err := fo.read(run); err != nil {
			return err
		}
	}
	for run, r := range fo.readers {
		if there[run] {
			continue
		}
		if r != nil { // deleted since the last look, and still to be read through its descriptor
			if err := fo.read(run); err != nil {
				return err
			}
		}
		delete(fo.readers, run)
		if r != nil {
			r.Close()
		}
	}
	return nil
}

// read finds what is new in one journal. One that will not grow is closed at
// its end, so that finished runs, however many, take no descriptors.
func (fo *follower) read(run string) error {
	r, known := fo.readers[run]
	if known && r == nil {
		return nil
	}
	if !known {
		var err error
		r, err = journal.OpenReader(fo.dir, run, journal.State{})
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		fo.readers[run] = r
	}
	gone, err := r.WriterGone()
	for err == nil {
		var rec *audit.Record
		if rec, err = r.Next(); err == nil && rec.Kept && fo.filter.Match(rec) {
			fo.found = append(fo.found, rec)
		}
	}
	if errors.Is(err, io.EOF) && !gone {
		return nil
	}
	r.Close()
	fo.readers[run] = nil
	// What is damaged or torn is reported by who takes the journal into the log.
	if errors.Is(err, io.EOF) || errors.Is(err, journal.ErrDamaged) {
		return nil
	}
	return err
}
