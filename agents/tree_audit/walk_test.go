package main

import (
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

// A mapDisk is a disk in memory, whose files may fail after some bytes.
type mapDisk struct {
	fstest.MapFS
	failing string
}

func (d mapDisk) ReadDir(p string) ([]fs.DirEntry, error) { return d.MapFS.ReadDir(p[1:]) }
func (d mapDisk) Readlink(string) (string, error)         { return "", fs.ErrInvalid }

func (d mapDisk) Open(p string) (fs.File, error) {
	f, err := d.MapFS.Open(p[1:])
	if err == nil && strings.HasSuffix(p, d.failing) {
		f = failingFile{f}
	}
	return f, err
}

type failingFile struct{ fs.File }

func (failingFile) Read([]byte) (int, error) { return 0, syscall.EIO }

// A file that breaks while it is read is reported; the others are compared.
func TestBrokenFiles(t *testing.T) {
	files := fstest.MapFS{"t/a": {Data: []byte("xy")}, "t/b": {Data: []byte("xy")}, "t/c": {Data: []byte("xy")}}
	if r := audit(mapDisk{files, "none"}, "/t", defaults); len(r.problems) != 0 || len(r.duplicates[0].paths) != 3 {
		t.Errorf("control: %v, %v", r.problems, r.duplicates)
	}
	r := audit(mapDisk{files, "/b"}, "/t", defaults)
	want := []problem{{"hash", "b", syscall.EIO.Error()}, {"read", "b", syscall.EIO.Error()}}
	if !slices.Equal(r.problems, want) || len(r.duplicates) != 1 || !slices.Equal(r.duplicates[0].paths,
		[]string{"a", "c"}) {
		t.Errorf("problems %v, duplicates %v", r.problems, r.duplicates)
	}
}

// Folders as deep as the bound are walked, deeper ones are reported.
func TestDepth(t *testing.T) {
	deep := "t" + strings.Repeat("/d", depthMax)
	files := fstest.MapFS{deep + "/in": {}, deep + "/d/out": {}}
	r := audit(mapDisk{files, "none"}, "/t", defaults)
	if len(r.files) != 1 || !strings.HasSuffix(r.files[0].path, "d/in") || len(r.problems) != 1 ||
		r.problems[0].why != "too deep" {
		t.Errorf("files %v, problems %v", r.files, r.problems)
	}
}

// Pipes and devices are never opened: opening one may block or act.
func TestSpecialFilesAreNotOpened(t *testing.T) {
	files := fstest.MapFS{
		"t/pipe": {Mode: fs.ModeNamedPipe}, "t/dev": {Mode: fs.ModeDevice},
		"t/l": {Mode: fs.ModeSymlink},
	}
	r := audit(mapDisk{files, "none"}, "/t", defaults)
	if got := kinds(r.findings); !slices.Equal(got, []string{"dev special_file", "pipe special_file"}) ||
		len(r.files) != 0 {
		t.Errorf("findings %v, files %v", got, r.files)
	}
	if len(r.problems) != 1 || r.problems[0].doing != "read link" {
		t.Errorf("problems %v", r.problems)
	}
}
