//go:build linux || darwin

package jail

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/wasi"
)

// An onlooker looks at a folder whenever something is asked before which records
// have to be on disk.
type onlooker struct {
	*walker
	t      *testing.T
	dir    string
	before string // what was there when the operation began
	acts   int
	late   bool // the folder had changed before it was asked
}

func (o *onlooker) look(mode caps.Mode) {
	if !caps.Acts(caps.FS, mode) {
		return
	}
	o.acts++
	o.late = o.late || state(o.t, o.dir) != o.before
}

func (o *onlooker) Admit(op Op, mode caps.Mode, p string) gate.Permit {
	o.look(mode)
	return o.walker.Admit(op, mode, p)
}

func (o *onlooker) AdmitTree(op Op, mode caps.Mode, p string) gate.Permit {
	o.look(mode)
	return o.walker.AdmitTree(op, mode, p)
}

// state is names, sizes, links and times of all that lies in dir.
func state(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		if err == nil {
			fmt.Fprintln(&b, name, info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return err
	}))
	return b.String()
}

// Whatever changes a file or a folder is asked for, as what it is, before
// anything has changed: so its record is on disk before. What changes nothing is
// the control. An open file was asked for when it was opened for writing, and
// its times when they are set through another descriptor.
func TestChangesAreAskedForBeforeTheyAreMade(t *testing.T) {
	write := func(o wasi.OpenFlags) func(j wasi.FS, at string) wasi.Errno {
		return func(j wasi.FS, at string) wasi.Errno {
			f, e := j.Open(at, false, o)
			if e == 0 {
				f.Close()
			}
			return e
		}
	}
	times := wasi.Times{Atim: 1e9, Mtim: 2e9}
	for name, c := range map[string]struct {
		path string
		acts bool
		do   func(j wasi.FS, at string) wasi.Errno
	}{
		"open": {"f", false, write(wasi.OpenFlags{Read: true})},
		"stat": {"f", false, func(j wasi.FS, at string) wasi.Errno { _, e := j.Stat(at, false, true); return e }},
		"readlink": {"l", false, func(j wasi.FS, at string) wasi.Errno {
			_,
				e := j.Readlink(at, make([]byte, 10))
			return e
		}},

		"open for writing": {"f", true, write(wasi.OpenFlags{Write: true})},
		"append":           {"f", true, write(wasi.OpenFlags{Write: true, Append: true})},
		"create":           {"new", true, write(wasi.OpenFlags{Write: true, Create: true})},
		"create to read":   {"new", true, write(wasi.OpenFlags{Read: true, Create: true})},
		"truncate":         {"f", true, write(wasi.OpenFlags{Write: true, Trunc: true})},
		"truncate to read": {"f", true, write(wasi.OpenFlags{Read: true, Trunc: true})},
		"set times":        {"f", true, func(j wasi.FS, at string) wasi.Errno { return j.SetTimes(at, false, true, times) }},
		"set times of a descriptor": {"f", true, func(j wasi.FS, at string) wasi.Errno {
			f, e := j.Open(at, false, wasi.OpenFlags{Read: true})
			if e != 0 {
				return e
			}
			defer f.Close()
			return f.SetTimes(times)
		}},
		"mkdir":   {"new", true, func(j wasi.FS, at string) wasi.Errno { return j.Mkdir(at) }},
		"rmdir":   {"d", true, func(j wasi.FS, at string) wasi.Errno { return j.Rmdir(at) }},
		"unlink":  {"f", true, func(j wasi.FS, at string) wasi.Errno { return j.Unlink(at, false) }},
		"rename":  {"f", true, func(j wasi.FS, at string) wasi.Errno { return j.Rename(at, at+"2", false) }},
		"link":    {"f", true, func(j wasi.FS, at string) wasi.Errno { return j.Link(at, false, at+"2") }},
		"symlink": {"new", true, func(j wasi.FS, at string) wasi.Errno { return j.Symlink("f", at) }},
	} {
		eachResolver(t, func(t *testing.T, walk bool) {
			p := newPlace(t)
			put(t, p.grant+"/f", "text")
			must(t, os.Mkdir(p.grant+"/d", 0o755))
			must(t, os.Symlink("f", p.grant+"/l"))
			o := &onlooker{
				walker: &walker{rules: []rule{{p.grant, all}}, gone: map[int]bool{}}, t: t, dir: p.grant,
				before: state(t, p.grant),
			}
			j, err := Open(Config{Gate: o, walk: walk, Roots: []string{p.grant}})
			must(t, err)
			defer j.Close()
			want(t, name, c.do(j, p.grant+"/"+c.path), 0)
			if changed := state(t, p.grant) != o.before; changed && !c.acts {
				t.Errorf("control: %s changes something", name)
			}
			if (o.acts > 0) != c.acts || o.late {
				t.Errorf("%s: asked for a change %d times, too late: %v", name, o.acts, o.late)
			}
		})
	}
}
