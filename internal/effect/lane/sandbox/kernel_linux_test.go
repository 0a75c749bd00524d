package sandbox

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A signal that interrupts the broker is none of the program's.
func TestTheBrokersSignalsAreItsOwn(t *testing.T) {
	asked := 0
	b := &broker{calls: map[uint32]brokeredCall{7: {do: func(*broker, *notice) answer {
		if asked++; asked < 3 {
			return failed(unix.EINTR)
		}
		return failed(unix.EACCES)
	}}}}
	if a := b.answer(&notice{call: 7}); a.errno != unix.EACCES || asked != 3 {
		t.Errorf("%+v after %d", a, asked)
	}
}

// Whatever the broker leaves to the kernel, Landlock refuses: here all of it.
func TestWhatGoesOnInTheKernelPlantsNoLinks(t *testing.T) {
	const all = "symlink move-link move-link-up hard-link move-folder move-folder-up exchange remove-folder \n"
	for kind, want := range map[string]string{"reach-landlocked": "\n", "reach-free": all} {
		dir := linkedTree(t)
		if out, err := exec.Command(os.Args[0], kind, dir).Output(); err != nil || string(out) != want && Landlock() > 0 {
			t.Errorf("%s: %v, %s", kind, err, out)
		}
	}
}

// linkedTree is a folder with links, folders and a file.
func linkedTree(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "sandbox-links")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	dir := base + "/data"
	for _, d := range []string{"secret", "data/sub", "data/a/b/c", "data/tree/deep", "data/file.d"} {
		if err := os.MkdirAll(base+"/"+d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/f", []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"old": base + "/secret", "chain": "old", "up": "../secret",
		"tree/deep/l": base + "/secret",
	} {
		if err := os.Symlink(text, dir+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// landlocked takes from this thread what Landlock takes from programs where a broker
// judges links, and tries.
func landlocked(dir string) string {
	runtime.LockOSThread()
	p := &Plan{
		Links: true, Mounts: []Mount{{Path: dir, Kind: bind, Access: ReadWrite}},
		guards: []guardedDir{{path: dir, dir: -1, judged: true}},
	}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = landlockFiles(p)
	}
	if err != nil {
		return err.Error()
	}
	return plain(dir)
}

// plain makes each kind of call of this thread's own, and says which went through.
func plain(dir string) (through string) {
	at := func(p string) string { return dir + "/" + p }
	for _, c := range []struct {
		name string
		err  error
	}{
		{"symlink", unix.Symlink("f", at("l"))},
		{"move-link", unix.Rename(at("old"), at("old2"))},
		{"move-link-up", unix.Rename(at("tree/deep/l"), at("l2"))},
		{"hard-link", unix.Link(at("chain"), at("l3"))},
		{"move-folder", unix.Rename(at("sub"), at("sub2"))},
		{"move-folder-up", unix.Rename(at("a/b/c"), at("c"))},
		{"exchange", unix.Renameat2(unix.AT_FDCWD, at("f"), unix.AT_FDCWD, at("up"), unix.RENAME_EXCHANGE)},
		{"remove-folder", unix.Rmdir(at("file.d"))},
	} {
		if c.err == nil {
			through += c.name + " "
		}
	}
	return through
}
