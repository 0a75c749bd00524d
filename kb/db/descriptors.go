package db

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/kb/wire"
)

// MinDescriptors is how many files the process must be able to open before the
// store writes. One batch may begin a memtable and a value log; behind it, tables
// are written and merged, several at a time. Badger does without none of them: a
// memtable that cannot be opened ends the process, and a table that cannot be made
// while others are merged is left out, with all records in it.
const MinDescriptors = 24

// heldDescriptors is how many files a store holds while it is open, beside its tables:
// the manifest, value logs, memtables, locks, its socket and who asks there first.
const heldDescriptors = 12

// A ShortError says that too few files can be opened.
type ShortError struct {
	need  int
	limit uint64
	why   error // nil: the limit of the process
}

func (e *ShortError) Error() string {
	text := fmt.Sprintf("the store needs %d free file descriptors, and this process has fewer (its limit is %d)", e.need,
		e.limit)
	if e.why != nil {
		return text + ": " + e.why.Error()
	}
	return text + "; raise it (ulimit -n, LimitNOFILE=)"
}

func (e *ShortError) Unwrap() []error { return []error{wire.ErrUnavailable, e.why} }

// DescriptorsLeft is an error unless so many files can be opened now.
func DescriptorsLeft(need int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	short := &ShortError{need: need, limit: limit.Cur}
	f, err := os.Open(os.DevNull) // the whole system may be short of them, too
	if err != nil {
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
			short.why = err
		}
		return short
	}
	defer f.Close()
	if limit.Cur < uint64(need) {
		return short
	}
	// Numbers are given out from the lowest: where the last ones are free, so many are.
	from := int(min(limit.Cur, 1<<20)) - need
	if n, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, from); err == nil {
		unix.Close(n)
		if n == from {
			return nil
		}
	}
	if free := countFree(int(f.Fd()), need); free < need {
		return short
	}
	return nil
}

// countFree is how many descriptors are free, up to most, found by taking them.
func countFree(of, most int) (free int) {
	var taken []int
	defer func() {
		for _, n := range taken {
			unix.Close(n)
		}
	}()
	for free < most {
		n, err := unix.FcntlInt(uintptr(of), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return free
		}
		taken = append(taken, n)
		free++
	}
	return free
}

// A Listener hears of badger's own words what nothing else tells.
type Listener struct {
	Failed chan error   // a table could not be written; it tries again each second
	Free   func() error // why no table can be made now
}

// Errorf implements [badger.Logger], as do the others.
func (l *Listener) Errorf(format string, args ...any) {
	if !strings.HasPrefix(format, "error flushing memtable") || len(args) == 0 {
		return
	}
	if err, ok := args[0].(error); ok {
		l.Tell(err)
	}
}

// Warningf hears nothing.
func (l *Listener) Warningf(string, ...any) {}

// Infof hears nothing.
func (l *Listener) Infof(string, ...any) {}

// mergePause is how long a merge waits before it looks for descriptors again.
const mergePause = 50 * time.Millisecond

// Debugf is told of each table that a merge is about to write, on the goroutine
// that writes it, which waits here until that can be done: what the table holds
// would be gone with those it is made of.
func (l *Listener) Debugf(format string, _ ...any) {
	if !strings.Contains(format, "LOG Compact. Added") {
		return
	}
	for err := l.Free(); err != nil; err = l.Free() {
		l.Tell(err)
		time.Sleep(mergePause)
	}
}

// Tell keeps one failure for who waits for the end, if anybody does.
func (l *Listener) Tell(err error) {
	select {
	case l.Failed <- err:
	default:
	}
}
