package runlog

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/printable"
)

// Bounds of the service's own log, which has no end of itself: how large a file
// of it grows, in bytes, and how many older ones are kept beside it.
const (
	MostBytes = 64 << 20
	Older     = 3
)

// A Rotated appends lines to a file, and puts it away as <path>.1 when it is
// full; what was <path>.1 is <path>.2 then, and so on. Each Write is one line or
// more, whole, and stands whole in one of the files. Several processes may write
// to one log: each rlp mcp of a home does, beside its rlp serve.
type Rotated struct {
	path  string
	most  int64 // bytes
	older int   // files

	mu   sync.Mutex
	file *os.File
	full int64 // bytes from which on it is tried to put the file away
}

// OpenRotated opens the log at path for appending.
func OpenRotated(path string, most int64, older int) (*Rotated, error) {
	f, err := appending(path)
	if err != nil {
		return nil, err
	}
	return &Rotated{path: path, most: most, older: older, file: f, full: most}, nil
}

func appending(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// Write implements [io.Writer]. A file that cannot be put away grows on, says so,
// and is tried again when as much more is in it.
func (l *Rotated) Write(lines []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if size, there := l.size(); !there || size > 0 && size+int64(len(lines)) > l.full {
		l.full = l.most
		if err := l.turn(); err != nil {
			l.full = size + l.most
			slog.New(slog.NewJSONHandler(l.file, &slog.HandlerOptions{ReplaceAttr: utc})).
				Warn("the log is full and could not be put away; it grows on", "message", printable.Line(err.Error()))
		}
	}
	return l.file.Write(lines)
}

// size is that of the file, whoever wrote to it. One that was too old to be kept
// is not there any more.
func (l *Rotated) size() (size int64, there bool) {
	info, err := l.file.Stat()
	if err != nil {
		return 0, true
	}
	return info.Size(), hasName(info)
}

// turn goes on with the next file: the one that another process has begun, or
// else its own. Who holds the lock of the file that has the name puts it away, one
// at a time. On an error the old one is still written to.
func (l *Rotated) turn() error {
	old := l.file
	if err := home.Lock(old, syscall.LOCK_EX); err != nil {
		return err
	}
	defer func() {
		if l.file == old {
			_ = home.Lock(old, syscall.LOCK_UN) // or it is released with the process
		}
	}()
	mine, err := old.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Lstat(l.path); err == nil && os.SameFile(mine, there) {
		if err := l.putAway(); err != nil {
			return err
		}
	}
	next, err := appending(l.path)
	if err != nil {
		return errors.Join(err, l.putBack(mine))
	}
	l.file = next
	if err := old.Close(); err != nil {
		return fmt.Errorf("closing the log that was put away: %w", err)
	}
	return nil
}

// putAway gives the file, and those before it, the names of older ones.
func (l *Rotated) putAway() error {
	for n := l.older - 1; n >= 1; n-- {
		if err := os.Rename(l.aged(n), l.aged(n+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Rename(l.path, l.aged(1))
}

// putBack gives the file its name back, where nothing has it.
func (l *Rotated) putBack(mine fs.FileInfo) error {
	away, err := os.Lstat(l.aged(1))
	if _, taken := os.Lstat(l.path); err != nil || !os.SameFile(mine, away) || !errors.Is(taken, fs.ErrNotExist) {
		return nil
	}
	return os.Rename(l.aged(1), l.path)
}

func (l *Rotated) aged(n int) string { return fmt.Sprintf("%s.%d", l.path, n) }

// Close closes the file.
func (l *Rotated) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
