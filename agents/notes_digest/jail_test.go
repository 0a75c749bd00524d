package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A jail is a disk as the host shows it: paths of the guest on the left, real
// folders on the right, everything else denied, whether it exists or not.
type jail struct {
	read, write map[string]string
	broken      map[string]error // paths that fail for a reason of their own
}

func (j jail) real(op, p string, grants ...map[string]string) (string, error) {
	if err := j.broken[p]; err != nil {
		return "", &fs.PathError{Op: op, Path: p, Err: err}
	}
	for _, g := range grants {
		for from, to := range g {
			if rest, ok := strings.CutPrefix(p, from); ok && (rest == "" || rest[0] == '/') {
				return to + filepath.FromSlash(rest), nil
			}
		}
	}
	return "", &fs.PathError{Op: op, Path: p, Err: fs.ErrPermission}
}

func (j jail) ReadDir(p string) ([]fs.DirEntry, error) {
	p, err := j.real("open", p, j.read, j.write)
	if err != nil {
		return nil, err
	}
	return osDisk{}.ReadDir(p)
}

func (j jail) ReadFile(p string) ([]byte, error) {
	p, err := j.real("open", p, j.read, j.write)
	if err != nil {
		return nil, err
	}
	return osDisk{}.ReadFile(p)
}

func (j jail) WriteFile(p string, content []byte) error {
	p, err := j.real("open", p, j.write)
	if err != nil {
		return err
	}
	return osDisk{}.WriteFile(p, content)
}

// tree writes files, by path relative to a new folder, and returns the folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
