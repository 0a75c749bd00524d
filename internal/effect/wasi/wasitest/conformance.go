package wasitest

import (
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
)

// TestFS holds an implementation of [wasi.FS] to what this package's own does
// and a guest relies on. open gives a new one each time, and an existing, empty
// directory in it that may be read and written, with everything below it.
func TestFS(t *testing.T, open func(t *testing.T) (wasi.FS, string)) {
	for name, f := range map[string]func(s suite){
		"files": suite.files, "open flags": suite.openFlags, "directories": suite.directories,
		"names": suite.names, "links": suite.links, "times": suite.times, "listing": suite.listing,
	} {
		t.Run(name, func(t *testing.T) {
			fs, root := open(t)
			f(suite{t, fs, root})
		})
	}
}

type suite struct {
	t    *testing.T
	fs   wasi.FS
	root string
}

func (s suite) at(name string) string {
	if name == "" {
		return s.root
	}
	return s.root + "/" + name
}

func (s suite) want(want, got wasi.Errno, what string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (s suite) open(name string, o wasi.OpenFlags) wasi.File {
	s.t.Helper()
	f, errno := s.fs.Open(s.at(name), false, o)
	if errno != wasi.Success {
		s.t.Fatalf("opening %s with %+v: %v", name, o, errno)
	}
	return f
}

func (s suite) put(name, text string) {
	s.t.Helper()
	f := s.open(name, wasi.OpenFlags{Write: true, Create: true, Trunc: true})
	n, errno := f.Write([]byte(text))
	if n != len(text) || errno != wasi.Success {
		s.t.Fatalf("writing %s: %d, %v", name, n, errno)
	}
	s.want(0, f.Close(), "closing")
}

func (s suite) holds(name, text string) {
	s.t.Helper()
	f := s.open(name, wasi.OpenFlags{Read: true})
	buf := make([]byte, len(text)+1)
	n, errno := f.Read(buf)
	if string(buf[:n]) != text || errno != wasi.Success {
		s.t.Errorf("%s holds %q, %v; want %q", name, buf[:n], errno, text)
	}
	s.want(0, f.Close(), "closing")
}

func (s suite) files() {
	f := s.open("f", wasi.OpenFlags{Read: true, Write: true, Create: true})
	_, errno := f.Write([]byte("0123456789"))
	s.want(0, errno, "write")
	pos, errno := f.Lseek(-4, 2)
	if pos != 6 || errno != wasi.Success {
		s.t.Errorf("seek from the end: %d, %v", pos, errno)
	}
	buf := make([]byte, 8)
	n, errno := f.Read(buf)
	if string(buf[:n]) != "6789" || errno != wasi.Success {
		s.t.Errorf("read %q, %v", buf[:n], errno)
	}
	if n, errno = f.Read(buf); n != 0 || errno != wasi.Success {
		s.t.Errorf("read at the end: %d, %v", n, errno)
	}
	_, errno = f.Pwrite([]byte("xy"), 1)
	s.want(0, errno, "pwrite")
	if n, errno = f.Pread(buf[:3], 0); string(buf[:n]) != "0xy" || errno != wasi.Success {
		s.t.Errorf("pread %q, %v", buf[:n], errno)
	}
	_, errno = f.Lseek(-1, 0)
	s.want(wasi.EINVAL, errno, "seek before the start")
	s.want(0, f.SetSize(4), "set size")
	s.want(0, f.Allocate(0, 6), "allocate")
	s.want(0, f.Sync(false), "sync")
	s.want(0, f.Sync(true), "datasync")
	st, errno := f.Stat()
	if st.Size != 6 || st.Type != wasi.TypeRegular || st.Nlink != 1 || errno != wasi.Success {
		s.t.Errorf("stat %+v, %v", st, errno)
	}
	byName, errno := s.fs.Stat(s.at("f"), false, true)
	if byName.Ino != st.Ino || byName.Dev != st.Dev || errno != wasi.Success {
		s.t.Errorf("stat by name %+v, %v", byName, errno)
	}
	s.want(0, f.SetAppend(true), "set append")
	_, _ = f.Lseek(0, 0)
	_, errno = f.Write([]byte("+"))
	s.want(0, errno, "append")
	s.want(0, f.Close(), "close")
	s.holds("f", "0xy3\x00\x00+")
}

func (s suite) openFlags() {
	s.put("f", "text")
	s.want(0, s.fs.Mkdir(s.at("d")), "mkdir")
	for _, c := range []struct {
		name    string
		mustDir bool
		o       wasi.OpenFlags
		want    wasi.Errno
	}{
		{name: "none", o: wasi.OpenFlags{Read: true}, want: wasi.ENOENT},
		{name: "none/f", o: wasi.OpenFlags{Write: true, Create: true}, want: wasi.ENOENT},
		{name: "f/g", o: wasi.OpenFlags{Read: true}, want: wasi.ENOTDIR},
		{name: "f", mustDir: true, o: wasi.OpenFlags{Read: true}, want: wasi.ENOTDIR},
		{name: "f", o: wasi.OpenFlags{Read: true, Directory: true}, want: wasi.ENOTDIR},
		{name: "f", o: wasi.OpenFlags{Write: true, Create: true, Exclusive: true}, want: wasi.EEXIST},
		{name: "d", o: wasi.OpenFlags{Read: true, Write: true}, want: wasi.EISDIR},
		{name: "d", o: wasi.OpenFlags{Read: true, Write: true, Directory: true}, want: wasi.EISDIR},
		{name: "d", mustDir: true, o: wasi.OpenFlags{Read: true}},
		{name: "d", o: wasi.OpenFlags{Read: true, Directory: true}},
		{name: "f", o: wasi.OpenFlags{Read: true, NoFollow: true}},
	} {
		f, errno := s.fs.Open(s.at(c.name), c.mustDir, c.o)
		if errno != c.want {
			s.t.Errorf("opening %s (mustDir %t) with %+v: %v, want %v", c.name, c.mustDir, c.o, errno, c.want)
		}
		if errno == wasi.Success {
			s.want(0, f.Close(), "closing")
		}
	}
	s.holds("f", "text")
	s.want(0, s.open("f", wasi.OpenFlags{Read: true, Trunc: true}).Close(), "closing")
	s.holds("f", "")

	reader := s.open("f", wasi.OpenFlags{Read: true})
	_, errno := reader.Write([]byte("x"))
	s.want(wasi.EBADF, errno, "writing to what is open for reading")
	s.want(0, reader.Close(), "closing")
	writer := s.open("f", wasi.OpenFlags{Write: true})
	_, errno = writer.Read(make([]byte, 1))
	s.want(wasi.EBADF, errno, "reading from what is open for writing")
	s.want(0, writer.Close(), "closing")
}

func (s suite) directories() {
	s.want(0, s.fs.Mkdir(s.at("d")), "mkdir")
	s.want(wasi.EEXIST, s.fs.Mkdir(s.at("d")), "mkdir again")
	s.want(wasi.ENOENT, s.fs.Mkdir(s.at("no/d")), "mkdir below nothing")
	s.put("d/f", "x")
	s.want(wasi.ENOTDIR, s.fs.Mkdir(s.at("d/f/g")), "mkdir below a file")
	s.want(wasi.ENOTEMPTY, s.fs.Rmdir(s.at("d")), "rmdir of a full one")
	s.want(wasi.ENOTDIR, s.fs.Rmdir(s.at("d/f")), "rmdir of a file")
	s.want(wasi.ENOENT, s.fs.Rmdir(s.at("no")), "rmdir of nothing")
	s.want(wasi.EISDIR, s.fs.Unlink(s.at("d"), false), "unlink of a directory")
	s.want(wasi.ENOTDIR, s.fs.Unlink(s.at("d/f"), true), "unlink of a file/")
	s.want(0, s.fs.Unlink(s.at("d/f"), false), "unlink")
	s.want(wasi.ENOENT, s.fs.Unlink(s.at("d/f"), false), "unlink again")
	s.want(0, s.fs.Rmdir(s.at("d")), "rmdir")
	_, errno := s.fs.Stat(s.at("d"), false, true)
	s.want(wasi.ENOENT, errno, "stat of what was removed")
}

func (s suite) names() {
	s.put("f", "f")
	s.put("g", "g")
	s.want(0, s.fs.Mkdir(s.at("d")), "mkdir")
	s.want(0, s.fs.Mkdir(s.at("e")), "mkdir")
	s.want(wasi.ENOENT, s.fs.Rename(s.at("no"), s.at("x"), false), "rename of nothing")
	s.want(wasi.ENOTDIR, s.fs.Rename(s.at("f"), s.at("x"), true), "rename of file/")
	s.want(wasi.EISDIR, s.fs.Rename(s.at("f"), s.at("d"), false), "file onto directory")
	s.want(wasi.ENOTDIR, s.fs.Rename(s.at("d"), s.at("f"), false), "directory onto file")
	s.want(wasi.EINVAL, s.fs.Rename(s.at("d"), s.at("d/in"), false), "directory into itself")
	s.want(0, s.fs.Rename(s.at("f"), s.at("g"), false), "file onto file")
	s.holds("g", "f")
	s.put("d/in", "in")
	s.want(wasi.ENOTEMPTY, s.fs.Rename(s.at("e"), s.at("d"), true), "onto a full directory")
	s.want(0, s.fs.Rename(s.at("d"), s.at("e"), true), "directory onto an empty one")
	s.holds("e/in", "in")
	_, errno := s.fs.Stat(s.at("d"), false, false)
	s.want(wasi.ENOENT, errno, "stat of the old name")
}

func (s suite) links() {
	s.put("f", "text")
	s.want(0, s.fs.Mkdir(s.at("d")), "mkdir")
	s.want(0, s.fs.Symlink("../f", s.at("d/l")), "symlink")
	s.want(wasi.EEXIST, s.fs.Symlink("x", s.at("d/l")), "symlink again")
	s.holds("d/l", "text")
	buf := make([]byte, 3)
	n, errno := s.fs.Readlink(s.at("d/l"), buf)
	if string(buf[:n]) != "../" || errno != wasi.Success {
		s.t.Errorf("readlink %q, %v", buf[:n], errno)
	}
	_, errno = s.fs.Readlink(s.at("f"), buf)
	s.want(wasi.EINVAL, errno, "readlink of a file")
	for follow, want := range map[bool]wasi.FileType{true: wasi.TypeRegular, false: wasi.TypeSymlink} {
		if st, errno := s.fs.Stat(s.at("d/l"), false, follow); st.Type != want || errno != wasi.Success {
			s.t.Errorf("stat following %t: %+v, %v", follow, st, errno)
		}
	}
	_, errno = s.fs.Open(s.at("d/l"), false, wasi.OpenFlags{Read: true, NoFollow: true})
	s.want(wasi.ELOOP, errno, "opening a link itself")
	s.want(0, s.fs.Symlink("loop", s.at("loop")), "symlink")
	_, errno = s.fs.Open(s.at("loop"), false, wasi.OpenFlags{Read: true})
	s.want(wasi.ELOOP, errno, "opening a loop")
	s.want(0, s.fs.Symlink("d", s.at("dir")), "symlink")
	if st, errno := s.fs.Stat(s.at("dir"), true, false); st.Type != wasi.TypeDirectory || errno != wasi.Success {
		s.t.Errorf("stat of link/: %+v, %v", st, errno)
	}
	s.want(0, s.fs.Unlink(s.at("d/l"), false), "unlink of a link")
	s.holds("f", "text")
}

func (s suite) times() {
	s.put("f", "x")
	s.want(0, s.fs.SetTimes(s.at("f"), false, true, wasi.Times{Atim: 5e9, Mtim: 7e9}), "set both")
	s.want(0, s.fs.SetTimes(s.at("f"), false, true, wasi.Times{OmitAtim: true, Mtim: 8e9}), "set one")
	st, errno := s.fs.Stat(s.at("f"), false, true)
	if st.Atim != 5e9 || st.Mtim != 8e9 || errno != wasi.Success {
		s.t.Errorf("times %d, %d, %v", st.Atim, st.Mtim, errno)
	}
	f := s.open("f", wasi.OpenFlags{Write: true})
	s.want(0, f.SetTimes(wasi.Times{OmitAtim: true, NowMtim: true}), "now")
	if st, _ := f.Stat(); st.Atim != 5e9 || st.Mtim <= 8e9 {
		s.t.Errorf("times %d, %d", st.Atim, st.Mtim)
	}
	s.want(0, f.Close(), "closing")
	s.want(wasi.ENOENT, s.fs.SetTimes(s.at("no"), false, true, wasi.Times{}), "of nothing")
}

func (s suite) listing() {
	want := []string{".", ".."}
	for _, name := range []string{"a", "b", strings.Repeat("n", 200), "é"} {
		s.put(name, "")
		want = append(want, name)
	}
	dir := s.open("", wasi.OpenFlags{Read: true, Directory: true})
	for _, batch := range []int{1, 2, 5, 100} {
		var got []string
		for {
			list, errno := dir.Readdir(uint64(len(got)), batch)
			if errno != wasi.Success || len(list) > batch {
				s.t.Fatalf("readdir: %d entries, %v", len(list), errno)
			}
			for _, e := range list {
				if e.Name[0] != '.' && e.Type != wasi.TypeRegular {
					s.t.Errorf("%s has type %d", e.Name, e.Type)
				}
				got = append(got, e.Name)
			}
			if len(list) < batch {
				break
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			s.t.Errorf("by %d: %q, want %q", batch, got, want)
		}
	}
	s.want(0, dir.Close(), "closing")
	f := s.open("a", wasi.OpenFlags{Read: true})
	_, errno := f.Readdir(0, 1)
	s.want(wasi.ENOTDIR, errno, "readdir of a file")
	s.want(0, f.Close(), "closing")
}
