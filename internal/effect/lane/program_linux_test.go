package lane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// put writes an executable file.
func put(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// What is moved to a program's path after it was looked at does not run.
func TestASwapRunsTheFileThatWasLookedAt(t *testing.T) {
	good, err := os.ReadFile(file(t, "/bin/echo"))
	if err != nil {
		t.Fatal(err)
	}
	bad, err := os.ReadFile(file(t, "/bin/pwd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, good, bad string }{
		{"binary", string(good), string(bad)},
		{"script", "#!/bin/sh\necho looked at $1\n", "#!/bin/sh\necho swapped\n"},
	} {
		path := filepath.Join(realDir(t), "program")
		n := newNative(t)
		mustRun(t, n, shell(t, "true")) // opens the lane
		p, err := pin(put(t, path, c.good))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(put(t, path+".new", c.bad), path); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(path, "looked at 1").Output()
		if err != nil || strings.Contains(string(out), "looked at") {
			t.Fatalf("%s: control: the path leads to %q, %v", c.name, out, err)
		}
		cmd := &Command{Program: path, Argv: []string{"program", "looked at 1"}, Timeout: time.Minute, MaxOutput: 1 << 10}
		dir, err := n.work.Handle("")
		if err != nil {
			t.Fatal(err)
		}
		ch, err := n.start(p, dir, cmd)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ch.watch(t.Context(), cmd)
		if err != nil || !strings.Contains(string(r.Stdout.Data), "looked at") {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
		_ = ch.close()
		p.close()
		_ = unix.Close(dir)
	}
}

func TestALinkInAPathIsNotFollowed(t *testing.T) {
	dir := realDir(t)
	if err := os.Mkdir(dir+"/sub", 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/sub/program", "#!/bin/sh\n")
	for link, target := range map[string]string{dir + "/link": dir + "/sub/program", dir + "/folder": dir + "/sub"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	n := newNative(t)
	run := func(path string) error {
		_, err := n.Run(t.Context(), &Command{Program: path, Argv: []string{"x"}, Timeout: time.Minute})
		return err
	}
	if err := run(dir + "/sub/program"); err != nil {
		t.Errorf("control: %v", err)
	}
	for _, path := range []string{dir + "/link", dir + "/folder/program"} {
		if err := run(path); !errors.Is(err, ErrNotProgram) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestWhatIsNoProgram(t *testing.T) {
	dir := realDir(t)
	fifo := dir + "/fifo"
	if err := unix.Mkfifo(fifo, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/plain", []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := newNative(t)
	for path, want := range map[string]error{
		dir + "/missing":                        ErrNotExist,
		dir + "/plain/below":                    ErrNotExist,
		dir:                                     ErrNotProgram,
		fifo:                                    ErrNotProgram,
		dir + "/plain":                          ErrNotProgram,
		put(t, dir+"/text", "echo no format\n"): ErrNotProgram,
		put(t, dir+"/empty", ""):                ErrNotProgram,
		put(t, dir+"/dangling", "#!"+dir+"/gone\n"):             ErrNotProgram,
		put(t, dir+"/long", "#!/"+strings.Repeat("x", 1<<10)):   ErrNotProgram,
		put(t, dir+"/broken", "\x7fELF"+strings.Repeat("x", 9)): ErrNotProgram,
	} {
		_, err := n.Run(t.Context(), &Command{Program: path, Argv: []string{"x"}, Timeout: time.Minute})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", filepath.Base(path), err, want)
		}
	}
	c := shell(t, "true")
	for range 40 {
		c.Argv = append(c.Argv, strings.Repeat("x", 100_000))
	}
	if _, err := n.Run(t.Context(), c); !errors.Is(err, ErrTooBig) {
		t.Errorf("4 MB of arguments: %v", err)
	}
}

func TestScripts(t *testing.T) {
	dir := realDir(t)
	script := put(t, dir+"/script", "#!/bin/sh -e\necho \"$1\" \"$2\"; read x; echo $x\n")
	r := mustRun(t, newNative(t), &Command{
		Program: script, Argv: []string{"script", "a b", "c"}, Stdin: []byte("in\n"), Timeout: time.Minute,
		MaxOutput: 1 << 10,
	})
	if r.ExitCode != 0 || string(r.Stdout.Data) != "a b c\nin\n" {
		t.Errorf("%+v", r)
	}
	f, err := Find(script)
	if err != nil || f.File != script || !slices.Contains(f.Via, file(t, "/bin/sh")) {
		t.Errorf("%+v, %v", f, err)
	}
	nested, err := Find(put(t, dir+"/nested", "#!"+script+" x\n"))
	if err != nil || !slices.Contains(nested.Via, script) || !slices.Contains(nested.Via, file(t, "/bin/sh")) {
		t.Errorf("%+v, %v", nested, err)
	}
	for _, text := range []string{"#!sh\n", "#!" + dir + "/loop\n"} {
		if f, err := Find(put(t, dir+"/loop", text)); !errors.Is(err, ErrNotProgram) {
			t.Errorf("%q: %+v, %v", text, f, err)
		}
	}
}

//rlp:holds K41
func TestTheFolderIsInTheWorkingFolder(t *testing.T) {
	n := newNative(t)
	mustRun(t, n, shell(t, "mkdir -p a/b; ln -s /etc out; ln -s a in; touch f"))
	for _, c := range []struct {
		dir, want string
	}{
		{"", ""},
		{".", ""},
		{"a/b", "/a/b"},
		{"a/../a", "/a"},
		{n.cfg.Work, ""},
		{n.cfg.Work + "/a", "/a"},
		{"..", "refused"},
		{"a/../..", "refused"},
		{"/etc", "refused"},
		{n.cfg.Work + "x", "refused"},
		{"out", "refused"},
		{"in", "refused"},
		{"in/b", "refused"},
		{"f", "refused"},
		{"missing", "refused"},
	} {
		cmd := shell(t, "pwd")
		cmd.Dir = c.dir
		r, err := n.Run(t.Context(), cmd)
		switch {
		case c.want == "refused":
			if !errors.Is(err, ErrDir) {
				t.Errorf("%q: %v", c.dir, err)
			}
		case err != nil || strings.TrimSpace(string(r.Stdout.Data)) != n.cfg.Work+c.want:
			t.Errorf("%q: %+v, %v", c.dir, r, err)
		}
	}
}

func TestTheWorkingFolderIsNewAndGoesWhenItIsEmpty(t *testing.T) {
	n := newNative(t)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Dir(n.cfg.Work)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing ran: %v", err)
	}
	mustRun(t, n, shell(t, "true"))
	if info, err := os.Stat(n.cfg.Work); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Dir(n.cfg.Work)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing was left: %v", err)
	}
	mustRun(t, n, shell(t, "echo kept >f"))
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(n.cfg.Work + "/f"); err != nil || string(text) != "kept\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := n.Run(t.Context(), shell(t, "true")); err == nil {
		t.Error("a working folder that was there before is used")
	}
}

func TestGroups(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"memory.max", "pids.max"} {
		put(t, filepath.Join(dir, name), "")
	}
	(&group{path: dir}).limit(Bounds{}.OrDefault())
	for name, want := range map[string]string{"memory.max": "1073741824", "pids.max": "256"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := os.Lstat(dir + "/memory.swap.max"); err == nil {
		t.Error("a file that the kernel does not have was made")
	}
	for text, want := range map[string]string{
		"": "/", "1:name=systemd:/x\n": "/",
		"5:cpu:/a\n0::/user.slice/b c\n": "/user.slice/b c",
	} {
		if got := ownGroup(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if g := makeGroupIn(dir, "x", Bounds{}); g != nil { // no control group: nothing can be ended in it
		t.Error("a folder is taken for a control group")
	}
	if left, err := filepath.Glob(dir + "/rlp-*"); err != nil || len(left) != 0 {
		t.Errorf("it is left: %v, %v", left, err)
	}
	gone := exec.Command("/bin/true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dead, mine := fmt.Sprintf("%s/rlp-%d-x-1", dir, gone.Process.Pid), fmt.Sprintf("%s/rlp-%d-x-1", dir, os.Getpid())
	for _, path := range []string{dead, mine, dir + "/rlp-other"} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeLeft(dir)
	if left, err := filepath.Glob(dir + "/rlp-*"); err != nil || len(left) != 2 || slices.Contains(left, dead) {
		t.Errorf("left: %v, %v", left, err)
	}
	n := newNative(t)
	mustRun(t, n, shell(t, "true"))
	if n.group != nil {
		path := n.group.path
		if err := os.Mkdir(path+"/below", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the group is left: %v", err)
		}
	}
}

func BenchmarkTrue(b *testing.B) {
	path := file(b, "/bin/true")
	b.Run("os_exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command(path).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("os_exec_output", func(b *testing.B) {
		for b.Loop() {
			var out, err bytes.Buffer
			cmd := exec.Command(path)
			cmd.Stdout, cmd.Stderr = &out, &err
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("lane", func(b *testing.B) {
		n := newNative(b)
		c := &Command{Program: path, Argv: []string{"true"}, Timeout: time.Minute, MaxOutput: 1 << 20}
		for b.Loop() {
			if r, err := n.Run(b.Context(), c); err != nil || r.ExitCode != 0 {
				b.Fatal(r, err)
			}
		}
	})
}
