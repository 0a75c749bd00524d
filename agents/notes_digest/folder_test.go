package main

import (
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"runloop.dev/rlp/agents/sdk/sdktest"
)

// A mapDisk is a disk in memory that notes what is read.
type mapDisk struct {
	fstest.MapFS
	read *[]string
}

func (d mapDisk) ReadDir(p string) ([]fs.DirEntry, error) { return d.MapFS.ReadDir(p[1:]) }
func (d mapDisk) WriteFile(string, []byte) error          { return syscall.ENOSPC }

func (d mapDisk) ReadFile(p string) ([]byte, error) {
	*d.read = append(*d.read, p)
	return d.MapFS.ReadFile(p[1:])
}

func TestWalkReadsNotesAndNothingElse(t *testing.T) {
	deep := strings.Repeat("/d", depthMax)
	files := fstest.MapFS{
		"n/b.md": {}, "n/a/z.md": {}, "n/a.md": {}, "n/x.txt": {}, "n/.obsidian/c.md": {},
		"n/pipe.md": {Mode: fs.ModeNamedPipe}, "n/dev.md": {Mode: fs.ModeDevice},
		"n/out/digest.md": {}, "n" + deep + "/e.md": {}, "n" + deep + "/d/f.md": {},
	}
	var read []string
	d := collect(mapDisk{files, &read}, "/n", "/n/out")
	want := []string{"/n/a/z.md", "/n/a.md", "/n/b.md", "/n" + deep + "/e.md"}
	if !slices.Equal(read, want) {
		t.Errorf("read %q, want %q", read, want)
	}
	if len(d.problems) != 1 || d.problems[0].why != "too deep" || d.notes != 4 || d.empty != 4 {
		t.Errorf("problems %v, %d notes, %d empty", d.problems, d.notes, d.empty)
	}
}

// An include of a note that is read anyway is not read twice, whatever way it
// is spelled, and an included file is asked for once.
func TestIncludesAreReadOnce(t *testing.T) {
	files := fstest.MapFS{
		"n/a.md":   {Data: []byte("![[b]] ![[b.md]] ![[./sub/../b]]\ninclude: /n/b.md\n![[/x/y]] ![[../x/y]]\n")},
		"n/b.md":   {Data: []byte("- [ ] once\n![[/x/y]]\n")},
		"n/sub/.k": {}, "x/y": {Data: []byte("- [ ] from outside\n")},
	}
	var read []string
	d := collect(mapDisk{files, &read}, "/n", "/out")
	if want := []string{"/n/a.md", "/x/y", "/n/b.md"}; !slices.Equal(read, want) {
		t.Errorf("read %q, want %q", read, want)
	}
	if len(d.todos) != 2 || len(d.included) != 1 {
		t.Errorf("to-dos %v, included %v", d.todos, d.included)
	}
}

// A full disk is a problem like any other, told in its own words.
func TestDiskFull(t *testing.T) {
	sdktest.New(t)
	var read []string
	summary := run(mapDisk{fstest.MapFS{"n/a.md": {}}, &read}, "/n", "/out")
	if !strings.Contains(summary, "could not write /out/digest.md: "+syscall.ENOSPC.Error()+"\n") {
		t.Errorf("summary:\n%s", summary)
	}
}
