package jail

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/wasi"
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
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // and never unlocked: the thread ends with its namespace
			if err := mountOwn(p.grant + "/m"); err != nil {
				t.Logf("not shown here, mounting needs rights: %v", err)
				return
			}
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
		}()
		<-done
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

// TestNoHandleIsLeft: whatever way an operation ends, it gives its handles back.
func TestNoHandleIsLeft(t *testing.T) {
	count := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(open)
	}
	before := count()
	for seed := range uint64(20) {
		t.Run("", func(t *testing.T) { play(t, noise(seed), seed%2 == 1) })
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
