package wasitest_test

import (
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/effect/wasi/wasitest"
)

func TestInMemory(t *testing.T) {
	wasitest.TestFS(t, func(t *testing.T) (wasi.FS, string) {
		fs := wasitest.NewFS()
		fs.MkdirAll("/some/root")
		t.Cleanup(func() {
			if fs.Opened != 0 {
				t.Errorf("%d files are still open", fs.Opened)
			}
		})
		return fs, "/some/root"
	})
}

// The checks of the suites that use it: an unclean path does not go unseen.
func TestUncleanPathsPanic(t *testing.T) {
	for _, p := range []string{"", "a", "/a/", "/a//b", "/a/./b", "/a/../b", "/..", "/a\x00"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q went unseen", p)
				}
			}()
			_, _ = wasitest.NewFS().Stat(p, false, true)
		}()
	}
}

func TestDeny(t *testing.T) {
	fs := wasitest.NewFS()
	fs.WriteFile("/secret/f", "x")
	fs.WriteFile("/secrets", "x")
	if errno := fs.Symlink("secret/f", "/l"); errno != wasi.Success {
		t.Fatal(errno)
	}
	fs.Deny("/secret")
	for p, want := range map[string]wasi.Errno{
		"/secret": wasi.EACCES, "/secret/f": wasi.EACCES, "/secret/none": wasi.EACCES, "/l": wasi.EACCES,
		"/secrets": wasi.Success, "/none": wasi.ENOENT,
	} {
		if _, errno := fs.Stat(p, false, true); errno != want {
			t.Errorf("%s: %v, want %v", p, errno, want)
		}
	}
}
