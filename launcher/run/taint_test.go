package run

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/record/audit"
)

// A recordedGate is a gate with its log.
type recordedGate struct {
	*gate.Gate
	log *audit.Memory
}

// reason is that of the newest decision.
func (g recordedGate) reason() string { return g.log.Decisions[len(g.log.Decisions)-1].Reason }

// files is a folder with an untrusted one in it, links that lead there and
// links that lead out of there, and the run's files below it.
func files(t *testing.T) (dir string, fs *jail.Jail, g recordedGate) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, name := range []string{"in/deep", "own", "tree/in"} {
		must(t, os.MkdirAll(dir+"/"+name, 0o700))
	}
	for _, name := range []string{"in/a.txt", "in/deep/b.txt", "own/c.txt", "own/gone.txt", "tree/in/d.txt", "inn"} {
		must(t, os.WriteFile(dir+"/"+name, []byte("x"), 0o600))
	}
	for name, to := range map[string]string{
		"own/link": dir + "/in/a.txt", "own/rel": "../in/a.txt", "own/dir": "../in", "in/out": dir + "/own/c.txt",
		"own/chain": "rel", "own/plain": "c.txt",
	} {
		must(t, os.Symlink(to, dir+"/"+name))
	}
	set, err := caps.Base([]caps.Entry{{Grant: caps.Grant{Family: caps.FS, Modes: caps.AllModes(caps.FS), Scope: dir}}},
		caps.Limits{})
	must(t, err)
	floor := &caps.Layer{
		Name: "_untrusted", Because: caps.UntrustedContext,
		Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.FS, Modes: caps.Modes(caps.Delete), Scope: "/"}}},
	}
	g.log = audit.NewMemory()
	g.Gate, err = gate.New(set, g.log, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1, Floor: floor})
	must(t, err)
	taint := Taint{Untrusted: []caps.Source{
		{Word: "fs", Grant: caps.Grant{Family: caps.FS, Modes: 1, Scope: dir + "/in"}},
		{Word: "fs", Grant: caps.Grant{Family: caps.FS, Modes: 1, Scope: dir + "/tree/in"}},
		{Word: "kb", Grant: caps.Grant{Family: caps.KBRead, Modes: 1, Scope: "*"}},
		{Word: caps.SourceInput},
	}}
	p, err := newPathGate(g.Gate, taint.Folders())
	must(t, err)
	fs, err = jail.Open(jail.Config{Gate: p, Roots: []string{dir}})
	must(t, err)
	t.Cleanup(func() { _ = fs.Close() })
	return dir, fs, g
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What lies below an untrusted folder marks the run when it is opened for
// reading, listed, moved, linked, or read as a link, by whatever name and
// through whatever links; nothing else does, and what else there is may be
// looked at, made and written.
//
//rlp:holds Y28
func TestFilesMarkTheRun(t *testing.T) {
	read, write := wasi.OpenFlags{Read: true}, wasi.OpenFlags{Write: true, Create: true}
	open := func(name string, o wasi.OpenFlags) func(string, *jail.Jail) wasi.Errno {
		return func(dir string, fs *jail.Jail) wasi.Errno {
			f, e := fs.Open(filepath.Join(dir, name), false, o)
			if e == 0 {
				e = f.Close()
			}
			return e
		}
	}
	readlink := func(name string) func(string, *jail.Jail) wasi.Errno {
		return func(dir string, fs *jail.Jail) wasi.Errno {
			_, e := fs.Readlink(dir+"/"+name, make([]byte, 100))
			return e
		}
	}
	for _, c := range []struct {
		what  string
		do    func(dir string, fs *jail.Jail) wasi.Errno
		cause string // below the folder; "" for a run that is not marked
		errno wasi.Errno
	}{
		{"a file", open("in/a.txt", read), "in/a.txt", 0},
		{"a file below", open("in/deep/b.txt", read), "in/deep/b.txt", 0},
		{"to read and write", open("in/a.txt", wasi.OpenFlags{Read: true, Write: true}), "in/a.txt", 0},
		{"a folder", open("in", wasi.OpenFlags{Read: true, Directory: true}), "in", 0},
		{"a link to it", open("own/link", read), "in/a.txt", 0},
		{"a relative link", open("own/rel", read), "in/a.txt", 0},
		{"a link to a link", open("own/chain", read), "in/a.txt", 0},
		{"through a folder that is a link", open("own/dir/a.txt", read), "in/a.txt", 0},
		{"a link that was put there", open("in/out", read), "in/out", 0},
		{"the text of such a link", readlink("in/out"), "in/out", 0},
		{"moved out", func(dir string, fs *jail.Jail) wasi.Errno {
			return fs.Rename(dir+"/in/a.txt", dir+"/own/a.txt",
				false)
		}, "in/a.txt", wasi.EACCES},
		{"moved with all around it", func(dir string, fs *jail.Jail) wasi.Errno {
			return fs.Rename(dir+"/tree", dir+"/own/tree", false)
		}, "tree", wasi.EACCES},
		{"linked out", func(dir string, fs *jail.Jail) wasi.Errno {
			return fs.Link(dir+"/in/a.txt", false, dir+"/own/a.txt")
		}, "in/a.txt", wasi.EACCES},
		{"linked out by a link", func(dir string, fs *jail.Jail) wasi.Errno {
			return fs.Link(dir+"/own/link", true, dir+"/own/a.txt")
		}, "in/a.txt", wasi.EACCES},
		{"linked within", func(dir string, fs *jail.Jail) wasi.Errno {
			return fs.Link(dir+"/in/a.txt", false, dir+"/in/deep/a.txt")
		}, "in/a.txt", 0}, // control

		{"another file", open("own/c.txt", read), "", 0},
		{"a link to another file", open("own/plain", read), "", 0},
		{"a name that begins alike", open("inn", read), "", 0},
		{"the folder around it", open(".", wasi.OpenFlags{Read: true, Directory: true}), "", 0},
		{"to write alone", open("in/new.txt", write), "", 0},
		{"the text of a link to it", readlink("own/link"), "", 0},
		{"whether it is there", func(dir string, fs *jail.Jail) wasi.Errno {
			_, e := fs.Stat(dir+"/in/a.txt", false,
				true)
			return e
		}, "", 0},
		{"removed", func(dir string, fs *jail.Jail) wasi.Errno { return fs.Unlink(dir+"/in/a.txt", false) }, "", 0},
		{"a link made to it", func(dir string, fs *jail.Jail) wasi.Errno {
			return fs.Symlink(dir+"/in/a.txt", dir+"/own/new")
		}, "", 0},
		{"moved in", func(dir string, fs *jail.Jail) wasi.Errno {
			return fs.Rename(dir+"/own/c.txt", dir+"/in/c.txt",
				false)
		}, "", 0},
	} {
		dir, fs, g := files(t)
		want := ""
		if c.cause != "" {
			want = "fs:" + dir + "/" + c.cause
		}
		if e := c.do(dir, fs); e != c.errno {
			t.Errorf("%s: errno %d, want %d", c.what, e, c.errno)
		}
		if got, _ := g.Tainted(); got != want {
			t.Errorf("%s: marked by %q, want %q", c.what, got, want)
		}
		if e := fs.Unlink(dir+"/own/gone.txt", false); (e == wasi.EACCES) != (want != "") {
			t.Errorf("%s: removing something afterwards: errno %d", c.what, e)
		}
	}
}

// A descriptor that was open before holds no more than the run does after it
// was marked.
//
//rlp:holds Y31
func TestOpenFilesAreNarrowedAsWell(t *testing.T) {
	for _, marked := range []bool{false, true} {
		dir, fs, g := files(t)
		f, e := fs.Open(dir+"/own/c.txt", false, wasi.OpenFlags{Read: true})
		if e != 0 {
			t.Fatal(e)
		}
		must(t, g.Hold(&caps.Layer{Name: "none"}))
		if marked {
			must(t, g.Hold(&caps.Layer{
				Name: "_untrusted",
				Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.FS, Modes: caps.AllModes(caps.FS), Scope: "/"}}},
			}))
		}
		if _, e := f.Read(make([]byte, 1)); (e == wasi.EACCES) != marked {
			t.Errorf("marked %v: errno %d", marked, e)
		}
		_ = f.Close()
	}
}

// A run that was launched by a marked one is marked from its beginning, as its
// record says, and so is one whose input is untrusted; a run that nothing can
// mark needs no floor.
//
//rlp:holds Y27 Y28
func TestRunsThatBeginMarked(t *testing.T) {
	for _, c := range []struct {
		name  string
		taint Taint
		input string
		cause string
	}{
		{"clean", Taint{}, `"do it"`, ""},
		{"launched by a marked run", Taint{Cause: "http:https://evil.example/"}, "", "http:https://evil.example/"},
		{"untrusted input", Taint{Untrusted: []caps.Source{{Word: caps.SourceInput}}}, `"do it"`, "input"},
		{"no input", Taint{Untrusted: []caps.Source{{Word: caps.SourceInput}}}, "", ""},
	} {
		log := audit.NewMemory()
		s := specOf(t, log, "kb:write:notes")
		s.Taint, s.Input = c.taint, []byte(c.input)
		s.Taint.Floor = &caps.Layer{
			Name: "_untrusted", Because: caps.UntrustedContext,
			Deny: []caps.Entry{entryOf(t, "kb:write:*")},
		}
		r := Launch(t.Context(), s)
		if r.Outcome != OK || (r.Untrusted == nil) != (c.cause == "") || r.Untrusted != nil && r.Untrusted.Cause != c.cause {
			t.Errorf("%s: %+v %+v", c.name, r, r.Untrusted)
		}
		want := []string{audit.KindRunStart, audit.KindRunComplete}
		if c.cause != "" {
			want = []string{audit.KindRunStart, audit.KindCapsSwap, audit.KindRunComplete}
		}
		if got := kinds(log); !slices.Equal(got, want) {
			t.Errorf("%s: recorded %v", c.name, got)
		}
		if swap := log.Events[1]; c.cause != "" && (swap.Label != c.cause || swap.Source != "_untrusted") {
			t.Errorf("%s: recorded %+v", c.name, swap)
		}
	}
	for text, want := range map[string]bool{
		"fs:read:/": false, "time:read:*": false, "env:read:A": false, "kb:read:notes": true, "net:x.example": true,
		"mcp:call:x": true, "agents:launch:x": true, "process:exec:/bin/ls": true, "model:use:*": true,
	} {
		if got := new(Taint).Possible([]caps.Entry{entryOf(t, text)}); got != want {
			t.Errorf("a run of %s can be marked: %v", text, got)
		}
	}
	if !(&Taint{Cause: "x"}).Possible(nil) || !(&Taint{Untrusted: []caps.Source{{Word: caps.SourceInput}}}).Possible(nil) {
		t.Error("a run that begins marked needs no floor")
	}
}

// Nor is a file of another folder linked into an untrusted one, where what is put
// in it would be in the other, too; to move it there is harmless.
func TestNothingIsLinkedIntoAnUntrustedFolder(t *testing.T) {
	dir, fs, g := files(t)
	if e := fs.Link(dir+"/own/c.txt", false, dir+"/in/new"); e != wasi.EACCES || g.reason() != "untrusted_context" {
		t.Errorf("errno %d, %s", e, g.reason())
	}
	if e := fs.Link(dir+"/own/c.txt", false, dir+"/own/new"); e != wasi.Success {
		t.Errorf("control: beside it: errno %d", e)
	}
	if e := fs.Rename(dir+"/own/c.txt", dir+"/in/new", false); e != wasi.Success {
		t.Errorf("moved there: errno %d", e)
	}
}
