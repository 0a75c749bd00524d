package remote

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// inheritable makes f one that a child would get.
func inheritable(t *testing.T, f *os.File) {
	t.Helper()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
}
