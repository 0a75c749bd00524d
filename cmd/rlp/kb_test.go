package main

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/source"
	"runloop.dev/rlp/launcher"
)

// Each answer of the store has the exit status that docs/kb.md gives it.
func TestStatusOfStoreAnswers(t *testing.T) {
	for err, want := range map[error]int{
		nil: launcher.StatusOK, kb.ErrUnavailable: launcher.StatusUnavailable, kb.ErrVersion: launcher.StatusUnavailable,
		kb.ErrSchema: launcher.StatusUnavailable, kb.ErrDomain: launcher.StatusUsage, kb.ErrInvalid: launcher.StatusUsage,
		kb.ErrBackup: launcher.StatusInput, source.ErrInput: launcher.StatusInput, kb.ErrDamaged: launcher.StatusFinding,
		fmt.Errorf("%w: %w", kb.ErrBackup, kb.ErrInvalid): launcher.StatusInput, kb.ErrConflict: launcher.StatusFinding,
		fs.ErrNotExist: launcher.StatusFinding, usagef("x"): launcher.StatusUsage,
	} {
		got := launcher.StatusOK
		if err != nil {
			got = launcher.StatusFinding
			var se *statusError
			if errors.As(kbStatus(fmt.Errorf("doing: %w", err)), &se) {
				got = se.Status
			}
		} else if kbStatus(nil) != nil {
			t.Error("nothing wrong is an error")
		}
		if got != want {
			t.Errorf("%v: exit status %d, want %d", err, got, want)
		}
	}
}

// A DOMAIN and a KEY are one argument or two; only the first slash parts them.
func TestPlaces(t *testing.T) {
	for want, args := range map[[2]string][]string{
		{"notes", "a"}: {"notes", "a"}, {"notes", "a/b"}: {"notes/a/b"}, {"notes", "x/y"}: {"notes", "x/y"},
		{"notes", ""}: {"notes/"},
	} {
		if domain, key := place(args); domain != want[0] || key != want[1] {
			t.Errorf("%q: %q and %q", args, domain, key)
		}
	}
}
