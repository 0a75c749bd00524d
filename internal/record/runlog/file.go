package runlog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
)

// flushAt is how many bytes of lines are gathered before they are appended.
const flushAt = 32 << 10

// lineFile gathers lines and appends them in whole batches to the file of the
// day, or to the next one when that is full. Whoever begins a file removes what
// is too old and too much. Who writes to a file holds a lock of it, so that it is
// not removed.
type lineFile struct {
	dir   string
	bound config.Log
	now   func() time.Time

	mu   sync.Mutex
	buf  bytes.Buffer
	file *os.File
	all  int64 // bytes of lines so far
}

func (f *lineFile) size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all
}

func (f *lineFile) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all += int64(len(line))
	if f.all > maxLogBytes+flushAt { // the agent's own lines count as well
		return len(line), nil
	}
	f.buf.Write(line)
	if f.buf.Len() < flushAt {
		return len(line), nil
	}
	return len(line), f.append()
}

func (f *lineFile) flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.buf.Len() == 0 && f.file == nil {
		return nil
	}
	err := f.append()
	if f.file != nil {
		err = errors.Join(err, f.file.Close())
	}
	return err
}

func (f *lineFile) append() error {
	if f.file != nil {
		if info, err := f.file.Stat(); err == nil && info.Size() >= f.full() {
			if err := f.file.Close(); err != nil {
				return err
			}
			f.file = nil
		}
	}
	if f.file == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	_, err := f.file.Write(f.buf.Bytes())
	f.buf.Reset()
	return err
}

// full is how large one file becomes: all of them are so many that the oldest can
// go, whatever one day brings.
func (f *lineFile) full() int64 { return f.bound.Bytes / 8 }

func (f *lineFile) open() error {
	if err := home.Make(f.dir); err != nil {
		return err
	}
	const tries = 100
	for range tries {
		name, err := f.current()
		if err != nil {
			return err
		}
		file, err := os.OpenFile(filepath.Join(f.dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_ = home.Lock(file, syscall.LOCK_SH) // where there are no locks, nothing is removed either
		info, err := file.Stat()
		if err != nil {
			return errors.Join(err, file.Close())
		}
		if !hasName(info) {
			file.Close()
			continue
		}
		f.file = file
		if info.Size() == 0 {
			f.tidy(name)
		}
		return nil
	}
	return fmt.Errorf("writing to %s: each file of it is removed at once", f.dir)
}

// hasName reports whether a file that is open was not removed.
func hasName(info fs.FileInfo) bool {
	st, is := info.Sys().(*syscall.Stat_t)
	return !is || st.Nlink > 0
}

// A logFile is one of the folder: the day that it is of, and which of that day.
type logFile struct {
	name, day string
	part      int
	size      int64
}

// current is the name of the file of now: the first of the day, mostly, and else
// the last one that there is, or the next.
func (f *lineFile) current() (string, error) {
	day := f.now().UTC().Format(time.DateOnly)
	if info, err := os.Lstat(filepath.Join(f.dir, day+".jsonl")); err == nil && info.Size() < f.full() {
		return day + ".jsonl", nil
	}
	all, err := f.files()
	if err != nil {
		return "", err
	}
	all = slices.DeleteFunc(all, func(l logFile) bool { return l.day != day })
	if len(all) == 0 {
		return day + ".jsonl", nil
	}
	last := all[len(all)-1]
	if last.size < f.full() {
		return last.name, nil
	}
	return fmt.Sprintf("%s.%d.jsonl", day, last.part+1), nil
}

// Files are the names of the files of a folder of logs, the oldest first.
func Files(dir string) ([]string, error) {
	all, err := (&lineFile{dir: dir}).files()
	names := make([]string, len(all))
	for i, l := range all {
		names[i] = l.name
	}
	return names, err
}

// files are those of the log, the oldest first, and nothing else that lies there.
func (f *lineFile) files() ([]logFile, error) {
	entries, err := os.ReadDir(f.dir)
	var all []logFile
	for _, e := range entries {
		stem, is := strings.CutSuffix(e.Name(), ".jsonl")
		day, number, more := strings.Cut(stem, ".")
		l := logFile{name: e.Name(), day: day, part: 1}
		if more {
			l.part, _ = strconv.Atoi(number) // 0 is no part
			is = is && l.part > 1 && strconv.Itoa(l.part) == number
		}
		if _, notDay := time.Parse(time.DateOnly, day); !is || notDay != nil || !e.Type().IsRegular() {
			continue
		}
		info, infoErr := e.Info()
		if infoErr != nil {
			continue // it is gone
		}
		l.size = info.Size()
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b logFile) int {
		return cmp.Or(strings.Compare(a.day, b.day),
			cmp.Compare(a.part, b.part))
	})
	return all, err
}

// tidy removes what is too old, and then the oldest until a file more has room.
// What cannot be removed stays, until somebody begins the next file.
func (f *lineFile) tidy(current string) {
	all, err := f.files()
	if err != nil {
		return
	}
	first := f.now().UTC().AddDate(0, 0, 1-int(f.bound.Days)).Format(time.DateOnly)
	sum := f.full()
	for _, l := range all {
		sum += l.size
	}
	for _, l := range all {
		if l.name != current && (l.day < first || sum > f.bound.Bytes) && removed(filepath.Join(f.dir, l.name)) {
			sum -= l.size
		}
	}
}

// removed removes a file that nobody writes to.
func removed(path string) bool {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	return home.Lock(file, syscall.LOCK_EX|syscall.LOCK_NB) == nil && os.Remove(path) == nil
}
