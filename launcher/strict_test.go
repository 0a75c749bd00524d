package launcher

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/audit"
	"runloop.dev/rlp/internal/jail"
)

// A granted path may go away between the look at it and its pinning: the launch
// is refused then as well, before the guest's first instruction.
//
//rlp:holds K21
func TestAPathThatGoesAwayRefuses(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	granted := filepath.Join(dir, "granted")
	for name, c := range map[string]struct {
		when    string // the folder is removed
		relaxed bool
		want    Outcome
	}{
		"there":          {"never", false, OK},
		"never there":    {"before", false, Refused},
		"gone since":     {"after", false, Refused},
		"gone, relaxed":  {"after", true, OK},
		"never, relaxed": {"before", true, OK},
	} {
		if err := os.MkdirAll(granted, 0o700); err != nil {
			t.Fatal(err)
		}
		remove := func(when string) {
			if c.when == when {
				if err := os.Remove(granted); err != nil {
					t.Fatal(err)
				}
			}
		}
		s := specOf(t, audit.NewMemory(), "fs:read:"+granted)
		s.KeepMissing = c.relaxed
		remove("before")
		if s.Policy, s.Paths, err = Canonical(s.Policy, jail.Canonical, jail.Canonical); err != nil {
			t.Fatal(err)
		}
		remove("after")
		r := Launch(t.Context(), s)
		if r.Outcome != c.want || r.Outcome == Refused && (r.ExitCode != StatusPolicy || !strings.Contains(r.Message, granted)) || r.Outcome == OK && r.GuestExit == nil {
			t.Errorf("%s: %s %d %s", name, r.Outcome, r.ExitCode, r.Message)
		}
	}
}
