package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A walker reads one folder.
type walker struct {
	ctx     context.Context
	root    *os.Root
	opt     Options
	visit   func(Document) error
	count   int
	skipped []Skipped
}

// walk reads every regular file below dir, which was found to be info, in the
// order of their paths, component by component. A file's key is its path within dir.
func (w *walker) walk(dir string, info fs.FileInfo) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	defer root.Close()
	switch opened, err := root.Stat("."); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrInput, err)
	case !os.SameFile(opened, info):
		return fmt.Errorf("%w: %s changed while it was opened", ErrInput, dir)
	}
	w.root = root
	return fs.WalkDir(root.FS(), ".", w.step)
}

func (w *walker) skip(path, reason string) { w.skipped = append(w.skipped, Skipped{path, reason}) }

func (w *walker) step(path string, d fs.DirEntry, err error) error {
	switch {
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case err != nil && path == ".":
		return fmt.Errorf("%w: %w", ErrInput, err)
	case err != nil:
		w.skip(path, reasonOf(err))
		return nil
	case path == ".":
		return nil
	}
	leave := error(nil)
	if d.IsDir() {
		leave = fs.SkipDir
	}
	switch {
	case !w.opt.Hidden && strings.HasPrefix(d.Name(), "."):
		w.skip(path, "hidden")
		return leave
	case d.IsDir() && strings.Count(path, "/") >= MaxDepth-1:
		w.skip(path, "too deep")
		return leave
	case d.IsDir():
		return w.folder(path)
	case d.Type()&fs.ModeSymlink != 0:
		w.skip(path, "a link")
		return nil
	case !d.Type().IsRegular():
		w.skip(path, "not a regular file")
		return nil
	}
	return w.file(path)
}

// folder looks at a folder before it is entered.
func (w *walker) folder(path string) error {
	f, err := w.root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		w.skip(path, reasonOf(err))
		return fs.SkipDir
	}
	defer f.Close()
	if kind := madeUp(f); kind != "" {
		w.skip(path, "on "+kind)
		return fs.SkipDir
	}
	switch info, err := f.Stat(); {
	case err != nil:
		w.skip(path, reasonOf(err))
		return fs.SkipDir
	case w.opt.isHome(info):
		w.skip(path, "the home of rlp")
		return fs.SkipDir
	}
	return nil
}

// file gives one file to visit.
func (w *walker) file(path string) error {
	key := w.opt.Prefix + path
	if reason := badKey(key); reason != "" {
		w.skip(path, reason)
		return nil
	}
	value, reason := w.read(path)
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if reason != "" {
		w.skip(path, reason)
		return nil
	}
	if w.count++; w.count > MaxCount {
		return fmt.Errorf("%w: there are more than %d files", ErrInput, MaxCount)
	}
	return w.visit(Document{Key: key, Value: value, ETag: digest(value), Source: "import:" + path})
}

// read reads a file that must still be what it was listed as.
func (w *walker) read(path string) (value []byte, reason string) {
	listed, err := w.root.Lstat(path)
	if err != nil {
		return nil, reasonOf(err)
	}
	f, err := w.root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, reasonOf(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, reasonOf(err)
	case !listed.Mode().IsRegular() || !info.Mode().IsRegular() || !os.SameFile(listed, info):
		return nil, "it changed while it was opened"
	case info.Size() > MaxDocument:
		return nil, "larger than 1 MiB"
	}
	if kind := madeUp(f); kind != "" {
		return nil, "on " + kind
	}
	value, err = io.ReadAll(io.LimitReader(stoppable{w.ctx, f}, MaxDocument+1))
	switch {
	case err != nil:
		return nil, reasonOf(err)
	case len(value) > MaxDocument:
		return nil, "larger than 1 MiB"
	}
	return value, ""
}

// reasonOf is an error without the path that stands beside it.
func reasonOf(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
