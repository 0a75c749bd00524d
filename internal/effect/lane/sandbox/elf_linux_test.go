package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Of a loader one header changes, which is read of programs alone; what is none, or
// ends too early, is refused and not read beyond its end.
func TestALoaderThatIsNeverAlone(t *testing.T) {
	name := loaderOf("/bin/sh")
	loader, err := os.ReadFile(name)
	if err != nil || loaderOf(name) != "" {
		t.Fatalf("%q: %v", name, err)
	}
	closed, err := neverAlone(bytes.Clone(loader))
	if err != nil || len(closed) != len(loader)+2 {
		t.Fatalf("%d bytes of %d: %v", len(closed), len(loader), err)
	}
	file := filepath.Join(t.TempDir(), "loader")
	if err := os.WriteFile(file, closed, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := loaderOf(file); got != "/" {
		t.Errorf("as a program it is loaded by %q", got)
	}
	for n := range 600 {
		if err := os.WriteFile(file, closed[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if got := loaderOf(file); got != "" {
			t.Errorf("of %d bytes the loader is %q", n, got)
		}
		if _, err := neverAlone(bytes.Clone(loader[:min(n, 400)])); err == nil {
			t.Errorf("%d bytes are a loader", n)
		}
	}
	if loaderOf("/etc/passwd") != "" || loaderOf("/") != "" || loaderOf("/nowhere") != "" {
		t.Error("what is no program has a loader")
	}
}

// What could be executed and has no path is not made.
func TestNoFilesInMemoryThatAreExecuted(t *testing.T) {
	id := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if id == 0 {
		return
	}
	const sealed = unix.MFD_NOEXEC_SEAL
	for flags, refused := range map[uint64]bool{
		0: true, unix.MFD_CLOEXEC: true, unix.MFD_EXEC: true, sealed: false, sealed | unix.MFD_CLOEXEC: false,
		sealed << 32: true,
	} {
		for _, bounded := range []bool{true, false} {
			want := uint32(unix.SECCOMP_RET_ALLOW)
			if refused && bounded {
				want = refuse(unix.ENOSYS).K
			}
			p := new(Plan)
			if bounded {
				p.Executes = new(Executables)
			}
			got := answerOf(t, p.strictFilter(runtime.GOARCH), id, unix.SYS_MEMFD_CREATE, 0, flags)
			if got != want {
				t.Errorf("flags %#x, bounded %v: %#x, want %#x", flags, bounded, got, want)
			}
		}
	}
}
