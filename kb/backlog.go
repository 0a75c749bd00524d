package kb

import (
	"context"
	"time"

	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/log"
)

// A Backlog is what journals hold that is not yet known to be in the log.
type Backlog struct {
	Journals    int
	Bytes       int64    // as long as the files are, what is allocated ahead included
	Quarantined []string // paths of damaged journals that were put aside
}

// Large reports whether a process that ends should take it in, if it has the time.
func (b Backlog) Large() bool { return b.Journals > 512 || b.Bytes > 64<<20 }

// BacklogOf counts a tenant's journals without opening its store; "" is DefaultTenant.
func BacklogOf(home, tenant string) (Backlog, error) {
	var b Backlog
	dir, err := JournalDir(home, tenant)
	if err != nil {
		return b, err
	}
	files, err := journal.List(dir)
	if err != nil {
		return b, err
	}
	for _, f := range files {
		b.Journals++
		b.Bytes += f.Bytes
	}
	b.Quarantined, err = journal.Quarantined(dir)
	return b, err
}

// IngestBacklog opens the store, takes in journals for as long as budget, and
// closes it again.
func IngestBacklog(ctx context.Context, o Options, budget time.Duration) (done log.Ingested, err error) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	s, err := Open(ctx, o)
	if err != nil {
		return done, err
	}
	defer func() {
		if closeErr := s.Close(); err == nil {
			err = closeErr
		}
	}()
	done, err = s.Ingest(ctx)
	if ctx.Err() != nil {
		return done, nil
	}
	return done, err
}
