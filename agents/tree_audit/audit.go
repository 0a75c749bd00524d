package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"runloop.dev/rlp/agents/sdk"
)

// A disk is what the agent needs of files. Errors are those of package os.
type disk interface {
	ReadDir(dir string) ([]fs.DirEntry, error) // sorted by name
	Open(path string) (fs.File, error)
	Readlink(path string) (string, error)
}

// osDisk is the disk that the host shows.
type osDisk struct{}

func (osDisk) ReadDir(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }
func (osDisk) Open(path string) (fs.File, error)         { return os.Open(path) }
func (osDisk) Readlink(path string) (string, error)      { return os.Readlink(path) }

// depthMax bounds how deep folders are walked.
const depthMax = 64

// A file is one regular file of the tree.
type file struct {
	path string // relative to the tree
	size int64  // bytes
}

// An auditor walks one tree.
type auditor struct {
	disk   disk
	root   string
	report *report
	buf    []byte // what a file is read into
}

// audit walks the tree and gathers the report. Links are looked at and never
// followed.
func audit(d disk, root string, o options) *report {
	a := auditor{
		disk: d, root: path.Clean(root), report: &report{tree: path.Clean(root), options: o},
		buf: make([]byte, scanMax),
	}
	a.walk("", 0)
	a.duplicates()
	a.report.sort()
	return a.report
}

func (a *auditor) walk(dir string, depth int) {
	entries, err := a.disk.ReadDir(path.Join(a.root, dir))
	if err != nil {
		a.report.problem("list", cmp.Or(dir, a.root), err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			a.link(name)
		case e.IsDir() && e.Name() == ".git":
			a.report.skipped = append(a.report.skipped, name)
		case e.IsDir() && depth == depthMax:
			a.report.problem("list", name, errors.New("too deep"))
		case e.IsDir():
			a.walk(name, depth+1)
		case e.Type().IsRegular():
			a.file(name)
		default:
			a.report.suspect(finding{path: name, kind: specialFile, detail: "not a regular file"})
		}
	}
}

// link reports a link that leads out of the tree.
func (a *auditor) link(name string) {
	target, err := a.disk.Readlink(path.Join(a.root, name))
	if err != nil {
		a.report.problem("read link", name, err)
		return
	}
	full := target
	if !path.IsAbs(full) {
		full = path.Join(a.root, path.Dir(name), full)
	}
	if full = path.Clean(full); full != a.root && !strings.HasPrefix(full, strings.TrimSuffix(a.root, "/")+"/") {
		a.report.suspect(finding{path: name, kind: linkOutside, detail: target})
	}
}

// file opens a file once for its size and its beginning.
func (a *auditor) file(name string) {
	f, err := a.disk.Open(path.Join(a.root, name))
	if err != nil {
		a.report.problem("read", name, err)
		a.report.suspect(byName(name)...) // a name can be told unread
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		a.report.problem("read", name, err)
		return
	}
	a.report.files = append(a.report.files, file{name, info.Size()})
	n, err := io.ReadFull(f, a.buf)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		a.report.problem("read", name, err)
	}
	a.report.suspect(byName(name)...)
	a.report.suspect(byContent(name, a.buf[:n])...)
}

// duplicates hashes what has the size of something else.
func (a *auditor) duplicates() {
	bySize := map[int64][]string{}
	for _, f := range a.report.files {
		if f.size > 0 {
			bySize[f.size] = append(bySize[f.size], f.path)
		}
	}
	for size, paths := range bySize {
		if len(paths) < 2 {
			continue
		}
		byHash := map[string][]string{}
		for _, p := range paths {
			sum, err := a.hash(p)
			if err != nil {
				a.report.problem("hash", p, err)
				continue
			}
			byHash[sum] = append(byHash[sum], p)
		}
		for sum, same := range byHash {
			if len(same) > 1 {
				slices.Sort(same)
				a.report.duplicates = append(a.report.duplicates, duplicate{sum, size, same})
			}
		}
	}
}

func (a *auditor) hash(name string) (string, error) {
	f, err := a.disk.Open(path.Join(a.root, name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	for {
		n, err := f.Read(a.buf)
		h.Write(a.buf[:n])
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// problem records something that could not be done.
func (r *report) problem(doing, target string, err error) {
	r.problems = append(r.problems, problem{doing, target, sdk.Why(err)})
}
