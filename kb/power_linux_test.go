package kb_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
)

// A drive is a file system of its own on an image, of which a copy shows what
// the disk has at that moment and no more.
type drive struct{ image, at string }

// newDrive makes and mounts a drive; nil where this is not to be had.
func newDrive(t *testing.T) *drive {
	t.Helper()
	dir := t.TempDir()
	d := &drive{filepath.Join(dir, "image"), filepath.Join(dir, "at")}
	if err := os.Mkdir(d.at, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(d.image)
	if err == nil {
		err = f.Truncate(256 << 20)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0",
		d.image).CombinedOutput(); err != nil {
		t.Logf("no file system of its own here: %v %s", err, out)
		return nil
	}
	if !d.mount(t, "commit=300") { // what nobody syncs stays in memory for as long
		return nil
	}
	return d
}

func (d *drive) mount(t *testing.T, options string) bool {
	t.Helper()
	if out, err := exec.Command("mount", "-o", "loop,"+options, d.image, d.at).CombinedOutput(); err != nil {
		t.Logf("no file system of its own here: %v %s", err, out)
		return false
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", d.at).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
	return true
}

// afterPowerLoss is what a machine finds on the drive that lost power now.
func (d *drive) afterPowerLoss(t *testing.T) *drive {
	t.Helper()
	dir := t.TempDir()
	left := &drive{filepath.Join(dir, "image"), filepath.Join(dir, "at")}
	if err := os.Mkdir(left.at, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "--sparse=always", d.image, left.image).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if !left.mount(t, "rw") {
		t.Fatal("a drive that lost power cannot be mounted")
	}
	return left
}

// freeze stops the children where they are.
func freeze(t *testing.T, children []*child) {
	t.Helper()
	for _, c := range children {
		if err := c.cmd.Process.Signal(unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; {
			p, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
			if _, state, _ := strings.Cut(string(p), ") "); err == nil && strings.HasPrefix(state, "T") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s does not stop: %s", c.name, p)
			}
		}
	}
}

// The power is lost under runs and writers of values: a real file system shows
// what is left. Each record that was synced is in the log afterwards, and each
// value that was acknowledged is there. The control is a run that does not sync,
// on a drive where nobody else does.
func TestPowerLoss(t *testing.T) {
	rounds := 1
	if os.Getenv("RLP_SOAK") == "1" {
		rounds = 25
	}
	if testing.Short() || os.Getuid() != 0 {
		rounds = 0
	}
	for range rounds {
		d, control := newDrive(t), newDrive(t)
		if d == nil || control == nil {
			return
		}
		at := func(d *drive) string { return filepath.Join(d.at, "home") }
		lost := start(t, "synced", "lost", at(control), "lost", "never")
		children := []*child{
			lost, start(t, "user", "user1", at(d), "user1"),
			start(t, "synced", "run1", at(d), "run1", "always"), start(t, "synced", "run2", at(d), "run2", "always"),
		}
		for _, c := range children {
			c.hear(t, 1+rand.IntN(100))
		}
		freeze(t, children)
		left, leftLost := d.afterPowerLoss(t), control.afterPowerLoss(t)
		for _, c := range children {
			c.kill(t)
		}
		s := openStore(t, at(left))
		for _, c := range children[1:] {
			if c.kind == "user" {
				checkUser(t, s, c)
			} else if n := inLog(t, s, c.name); n < len(c.said) {
				t.Errorf("%s was told of %d records on disk, %d are left", c.name, len(c.said), n)
			}
		}
		if v, err := s.Verify(t.Context()); err != nil {
			t.Errorf("%+v %v", v, err)
		}
		if n := inLog(t, openStore(t, at(leftLost)), "lost"); n >= len(lost.said) {
			t.Errorf("control: of %d records that nobody synced %d are left", len(lost.said), n)
		}
	}
}

// A journal is removed when the log has its records on disk: what was removed
// before the power was lost is in the log after it. The journals are the control,
// for they were there.
func TestPowerLossAfterTakingIn(t *testing.T) {
	if testing.Short() || os.Getuid() != 0 {
		return
	}
	d := newDrive(t)
	if d == nil {
		return
	}
	const runs, records = 20, 50
	home := filepath.Join(d.at, "home")
	dir, err := kb.JournalDir(home, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		j, err := journal.Create(journal.Options{Dir: dir, Head: audit.Head{
			RunID: fmt.Sprintf("run%d", i), Tenant: "default",
			Agent: "powerless",
		}})
		if err != nil {
			t.Fatal(err)
		}
		for n := range records {
			if _, err := j.Decide(&audit.Decision{Keep: true, Target: fmt.Sprint(n)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(j.Sync(), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
	before := d.afterPowerLoss(t)
	taker := start(t, "taker", "taker", home)
	for taker.hear(t, 1); taker.said[len(taker.said)-1] != "0"; {
		taker.hear(t, 1)
	}
	freeze(t, []*child{taker})
	left := d.afterPowerLoss(t)
	taker.kill(t)
	if names, err := journal.Names(filepath.Join(before.at, "home", "journal")); err != nil || len(names) != runs {
		t.Fatalf("control: %v %v", names, err)
	}
	s := openStore(t, filepath.Join(left.at, "home"))
	for i := range runs {
		if n := inLog(t, s, fmt.Sprintf("run%d", i)); n != records {
			t.Errorf("run%d has %d records of %d", i, n, records)
		}
	}
}

// inLog takes in journals and counts the decisions of a run.
func inLog(t *testing.T, s *kb.Store, run string) int {
	t.Helper()
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	return max(countRun(t, s, run)-1, 0)
}
