package compose

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/launcher/run"
)

// journalClock is the clock that records are stamped by.
func journalClock() *journal.Clock { return journal.NewClock(time.Now) }

// mostDecisions is how many decisions a run may record: more than the usual
// only when the operator allows it more calls.
func mostDecisions(layers []*caps.Layer) uint32 {
	most := int64(journal.MaxDecisions)
	for _, l := range layers {
		if n, set := l.Limits.Get(caps.HostcallsMax); set {
			most = max(most, n)
		}
	}
	return uint32(min(most, math.MaxUint32/2))
}

// journalOpener opens the journal of a run; each decision is told to observe.
func journalOpener(h home.Home, opt journal.Options, observe func(*audit.Record) bool) func(audit.Head) (run.Journal,
	error) {
	opt.Dir, opt.Observe = h.Journal(), observe
	return func(head audit.Head) (run.Journal, error) {
		opt := opt
		opt.Head = head
		j, err := journal.Create(opt)
		if err != nil {
			return nil, fmt.Errorf("creating the journal: %w", err)
		}
		return j, nil
	}
}

// maxJournals is how many journals may lie there before a run that ends takes
// them in.
const MaxJournals = 512

// FewJournals counts names alone: it is asked at the end of some launches.
func FewJournals(h home.Home) (bool, error) {
	dir, err := os.Open(h.Journal())
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("counting journals: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(MaxJournals + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("counting journals: %w", err)
	}
	return len(names) <= MaxJournals, nil
}
