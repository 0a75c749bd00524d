package compose

import (
	"encoding/binary"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A file that has been as it is for a while is not opened again, and one that
// was written a moment ago is: its times may be those of another writing.
func TestWhatIsAsItWasIsNotRead(t *testing.T) {
	dir := t.TempDir()
	w := watch(t, dir, map[string]string{"bomb.toml": narrow})
	opened, err := unix.InotifyInit1(unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(opened)
	if _, err := unix.InotifyAddWatch(opened, filepath.Join(dir, "caps/overrides/bomb.toml"), unix.IN_OPEN|
		unix.IN_CLOSE); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		later time.Duration
		want  int
	}{{0, 1}, {0, 1}, {time.Hour, 1}, {time.Hour, 0}, {0, 0}} {
		w.clock = func() time.Time { return time.Now().Add(c.later) }
		if _, edited, err := w.look(); edited || err != nil {
			t.Fatal(edited, err)
		}
		if n := openings(t, opened); n != c.want {
			t.Errorf("look %d, %v after it was written: opened %d times, want %d", i, c.later, n, c.want)
		}
	}
}

// openings counts how often a file was opened.
func openings(t *testing.T, watch int) int {
	t.Helper()
	buf := make([]byte, 64*unix.SizeofInotifyEvent)
	n, err := unix.Read(watch, buf)
	if err == unix.EAGAIN {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for at := 0; at+unix.SizeofInotifyEvent <= n; at += unix.SizeofInotifyEvent {
		if binary.NativeEndian.Uint32(buf[at+4:])&unix.IN_OPEN != 0 {
			count++
		}
	}
	return count
}
