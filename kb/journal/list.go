package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// quarantineName is where [Quarantine] puts journals.
const quarantineName = ".quarantine"

// A File is one journal in a directory.
type File struct {
	Run   string
	Bytes int64
	Time  time.Time // of the last change that the file system knows of
}

// List returns the journals in dir, by name, which for the run ids that are
// given out is the order in which the runs began. No directory is an empty one.
func List(dir string) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing journals: %w", err)
	}
	files := make([]File, 0, len(entries))
	for _, e := range entries {
		if !ValidRun(e.Name()) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing journals: %w", err)
		}
		files = append(files, File{e.Name(), info.Size(), info.ModTime()})
	}
	return files, nil
}

// Names returns the runs that have a journal in dir, without looking at the files.
func Names(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing journals: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("listing journals: %w", err)
	}
	runs := names[:0]
	for _, n := range names {
		if ValidRun(n) {
			runs = append(runs, n)
		}
	}
	return runs, nil
}

// Remove deletes a journal whose writer is gone and whose records are kept elsewhere.
func Remove(dir, run string) error {
	if err := os.Remove(filepath.Join(dir, run)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a journal: %w", err)
	}
	return nil
}

// Quarantine puts a damaged journal aside, where nobody takes it for one and
// nobody deletes it, and returns its new path.
func Quarantine(dir, run string) (string, error) {
	aside := filepath.Join(dir, quarantineName)
	if err := makeDir(aside, systemDisk{}); err != nil {
		return "", fmt.Errorf("putting a damaged journal aside: %w", err)
	}
	from := filepath.Join(dir, run)
	for i := 0; ; i++ {
		to := filepath.Join(aside, run)
		if i > 0 {
			to += fmt.Sprintf(".%d", i)
		}
		err := renameNew(from, to)
		if errors.Is(err, fs.ErrExist) && i < 1000 {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("putting a damaged journal aside: %w", err)
		}
		return to, nil
	}
}

// Quarantined returns the paths of the journals that were put aside.
func Quarantined(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(escapeGlob(dir), quarantineName, "*"))
	if err != nil {
		return nil, fmt.Errorf("listing damaged journals: %w", err)
	}
	return paths, nil
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// Sweep removes what writers that died while they made a journal have left,
// once it is older than an hour.
func Sweep(dir string, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("sweeping journals: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) && !strings.HasPrefix(e.Name(), secretName+"-") {
			continue
		}
		info, err := e.Info()
		if err == nil && now.Sub(info.ModTime()) > time.Hour {
			os.Remove(filepath.Join(dir, e.Name())) //nolint:errcheck // the next sweep meets it again
		}
	}
	return nil
}
