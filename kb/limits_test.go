package kb_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

func stop(t *testing.T, c *child) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// It has stopped when the system says so.
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(c.cmd.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Fatal(ws, err)
	}
}

func resume(t *testing.T, c *child) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// childLimited records until the system lets the file grow no more, says how
// many were acknowledged, and records the end.
func childLimited(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 300 << 10, Max: 300 << 10}); err != nil {
		return err
	}
	j, err := journal.Create(journal.Options{Dir: dir, Head: audit.Head{RunID: "run1", Tenant: "default"}})
	if err != nil {
		return err
	}
	for i := 0; i < 100000; i++ {
		if _, err := j.Decide(&audit.Decision{Keep: true, Target: strconv.Itoa(i)}); err != nil {
			fmt.Println(i, errors.Is(err, unix.EFBIG))
			if err := j.Event(&audit.Event{Kind: audit.KindRunFailed, Outcome: "audit_failed", ExitCode: 74}); err != nil {
				return err
			}
			if err := j.Close(); err != nil {
				return err
			}
			os.Exit(0)
		}
	}
	return errors.New("the limit had no effect")
}

// A file that cannot grow is an error of the decision that needed it to: what
// was acknowledged is there, that one is not, and the end is recorded.
//
//rlp:holds R71
func TestNoRoom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	c := start(t, "limited", "run1", dir)
	c.hear(t, 1)
	if err := c.cmd.Wait(); err != nil {
		t.Fatal(err, c.err)
	}
	var told int
	var tooBig bool
	if _, err := fmt.Sscan(c.said[0], &told, &tooBig); err != nil || !tooBig {
		t.Fatal(c.said, err)
	}
	r, err := journal.OpenReader(dir, "run1", journal.State{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for {
		rec, err := r.Next()
		if err != nil {
			break
		}
		n++
		if rec.Decision != nil && rec.Decision.Target != strconv.Itoa(n-1) {
			t.Fatalf("record %d is of %s", n, rec.Decision.Target)
		}
	}
	if n != told+1 || !r.State().Ended {
		t.Errorf("%d decisions were acknowledged, %d records are there, ended %v", told, n-1, r.State().Ended)
	}
}
