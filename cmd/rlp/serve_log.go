//go:build !slim

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
)

// Bounds of the service's own log, which has no end of itself: how large a file
// of it grows, in bytes, and how many older ones are kept beside it.
const (
	mostServeLog = 64 << 20
	olderLogs    = 3
)

// A rotatedLog appends lines to a file, and puts it away as <path>.1 when it is
// full; what was <path>.1 is <path>.2 then, and so on. Each Write is one line or
// more, whole, and stands whole in one of the files.
type rotatedLog struct {
	path  string
	most  int64 // bytes
	older int   // files

	mu   sync.Mutex
	file *os.File
	size int64
	ours bool // no other process rotates it
}

// openRotated opens the log at path for appending. Nothing is put away until
// [rotatedLog.own]: two processes that did it at once would lose a file.
func openRotated(path string, most int64, older int) (*rotatedLog, error) {
	f, err := appending(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &rotatedLog{path: path, most: most, older: older, file: f, size: info.Size()}, nil
}

func appending(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// own says that no other process rotates this log while this one lives.
func (l *rotatedLog) own() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ours = true
}

// Write implements [io.Writer]. A file that cannot be put away grows on, says so,
// and is tried again when as much more is in it.
func (l *rotatedLog) Write(lines []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ours && l.size > 0 && l.size+int64(len(lines)) > l.most {
		if err := l.rotate(); err != nil {
			slog.New(slog.NewJSONHandler(l.file, &slog.HandlerOptions{ReplaceAttr: utc})).
				Warn("the log is full and could not be put away; it grows on", "message", printable(err.Error()))
		}
		l.size = 0
	}
	n, err := l.file.Write(lines)
	l.size += int64(n)
	return n, err
}

// rotate puts the file away and opens the next. On an error the old one is still
// written to.
func (l *rotatedLog) rotate() error {
	for n := l.older - 1; n >= 1; n-- {
		if err := os.Rename(l.aged(n), l.aged(n+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(l.path, l.aged(1)); err != nil {
		return err
	}
	next, err := appending(l.path)
	if err != nil {
		return errors.Join(err, os.Rename(l.aged(1), l.path))
	}
	old := l.file
	l.file = next
	if err := old.Close(); err != nil {
		return fmt.Errorf("closing the log that was put away: %w", err)
	}
	return nil
}

func (l *rotatedLog) aged(n int) string { return fmt.Sprintf("%s.%d", l.path, n) }

// Close closes the file.
func (l *rotatedLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
