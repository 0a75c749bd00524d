package main

import (
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
	if _, err := unix.InotifyAddWatch(opened, filepath.Join(dir, "caps/overrides/bomb.toml"), unix.IN_OPEN|unix.IN_CLOSE); err != nil {
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
		if n := opens(t, opened); n != c.want {
			t.Errorf("look %d, %v after it was written: opened %d times, want %d", i, c.later, n, c.want)
		}
	}
}
