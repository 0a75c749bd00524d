package jail

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/effect/wasi"
)

// TestMountsAreNotEntered: what is mounted below a grant is not granted. The
// system's own /proc serves everywhere; a mount of the test's own needs rights.
func TestMountsAreNotEntered(t *testing.T) {
	if _, err := os.ReadFile("/proc/self/environ"); err != nil {
		t.Fatalf("the attack does not work on plain file functions: %v", err)
	}
	eachResolver(t, func(t *testing.T, walk bool) {
		j, _ := open(t, walk, rule{"/", read})
		_, e := slurp(j, "/proc/self/environ")
		want(t, "read", e, wasi.EACCES)
		_, e = j.Stat("/proc", true, true)
		want(t, "stat of the mount point", e, wasi.EACCES)
		_, e = j.Stat("/etc", true, true)
		want(t, "stat of what is not mounted", e, 0)
	})
}

// TestMountBelowAGrant mounts a file system into a grant, in a mount namespace
// of its own, after the jail was opened.
func TestMountBelowAGrant(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		must(t, os.MkdirAll(p.grant+"/m/sub", 0o755))
		mounted(t, func() error { return mountOwn(p.grant + "/m") }, func() {
			put(t, p.grant+"/m/secret.txt", "CANARY")
			j, _ := open(t, walk, rule{p.grant, all})
			leaks(t, p.grant+"/m/secret.txt")
			_, e := slurp(j, p.grant+"/m/secret.txt")
			want(t, "read", e, wasi.EACCES)
			_, e = j.Stat(p.grant+"/m", false, true)
			want(t, "stat", e, wasi.EACCES)
			want(t, "list", opened(j, p.grant+"/m", wasi.OpenFlags{Read: true, Directory: true}), wasi.EACCES)
			want(t, "create", spill(j, p.grant+"/m/new", "x", wasi.OpenFlags{Create: true}), wasi.EACCES)
			want(t, "unlink", j.Unlink(p.grant+"/m/secret.txt", false), wasi.EACCES)
			want(t, "move over it", j.Rename(p.grant+"/m/secret.txt", p.grant+"/got", false), wasi.EACCES)
			must(t, os.Symlink("m", p.grant+"/lm"))
			_, e = j.Stat(p.grant+"/lm", false, true)
			want(t, "stat by a link", e, wasi.EACCES)
			must(t, os.Mkdir(p.grant+"/top", 0o755))
			must(t, os.Mkdir(p.grant+"/top/m2", 0o755))
			must(t, unix.Mount("tmpfs", p.grant+"/top/m2", "tmpfs", 0, "size=1m"))
			want(t, "move what holds one", j.Rename(p.grant+"/top", p.grant+"/got", false), wasi.EXDEV)
			if _, err := os.Lstat(p.grant + "/top/m2"); err != nil {
				t.Errorf("moved: %v", err)
			}
		})
	})
}

// mountOwn makes a mount namespace for this thread and an empty tmpfs at dir.
func mountOwn(dir string) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m")
}

// TestAFolderThatTurnsReadOnly: what the file system refuses is refused.
func TestAFolderThatTurnsReadOnly(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		mounted(t, func() error { return mountOwn(p.grant) }, func() {
			put(t, p.grant+"/f", "text")
			j, _ := open(t, walk, rule{p.grant, all})
			f, e := j.Open(p.grant+"/f", false, wasi.OpenFlags{Read: true})
			want(t, "open", e, 0)
			times := wasi.Times{Atim: 1e9, Mtim: 1e9}
			want(t, "control: times", f.SetTimes(times), 0)
			must(t, unix.Mount("", p.grant, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
			want(t, "times", f.SetTimes(times), wasi.EROFS)
			want(t, "times of the path", j.SetTimes(p.grant+"/f", false, true, times), wasi.EROFS)
			want(t, "times of the folder", j.SetTimes(p.grant, true, true, times), wasi.EROFS)
			want(t, "mkdir", j.Mkdir(p.grant+"/d"), wasi.EROFS)
			want(t, "close", f.Close(), 0)
		})
	})
}

// TestFilesOfALowerLayer: a file system made of several, as that of a container,
// numbers the devices of its files otherwise than those of its folders.
func TestFilesOfALowerLayer(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		for _, d := range []string{"/lower", "/rest"} {
			must(t, os.Mkdir(p.base+d, 0o755))
		}
		mounted(t, func() error {
			if err := mountOwn(p.base + "/lower"); err != nil {
				return err
			}
			if err := unix.Mount("tmpfs", p.base+"/rest", "tmpfs", 0, "size=1m"); err != nil {
				return err
			}
			for _, d := range []string{"/lower/d", "/rest/upper", "/rest/work"} {
				must(t, os.Mkdir(p.base+d, 0o755))
			}
			put(t, p.base+"/lower/d/f", "text")
			layers := "lowerdir=" + p.base + "/lower,upperdir=" + p.base + "/rest/upper,workdir=" + p.base + "/rest/work"
			return unix.Mount("overlay", p.grant, "overlay", 0, layers)
		}, func() {
			j, _ := open(t, walk, rule{p.grant, all})
			if text, e := slurp(j, p.grant+"/d/f"); e != 0 || text != "text" {
				t.Errorf("%q, errno %d", text, e)
			}
			st, e := j.Stat(p.grant+"/d/f", false, true)
			if e != 0 || st.Size != 4 {
				t.Errorf("stat %+v, errno %d", st, e)
			}
		})
	})
}

// mounted runs f after mount on a thread that has mounts of its own.
func mounted(t *testing.T, mount func() error, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its namespace
		if err := mount(); err != nil {
			t.Logf("not shown here, mounting needs rights: %v", err)
			return
		}
		f()
	}()
	<-done
}
