package run

import (
	"testing"

	"runloop.dev/rlp/internal/record/audit"
)

// A launch without a tenant, or without an id of its own, begins nothing: no
// journal is opened and no guest is compiled. Both are names that may stand in
// paths as they are.
//
//rlp:holds K1 K2
func TestALaunchSaysForWhomItIs(t *testing.T) {
	for _, c := range []struct {
		tenant, run string
		ok          bool
	}{
		{"default", aRun, true},
		{"ACME-2_co", aRun, true},
		{"", aRun, false},
		{"..", aRun, false},
		{"a/b", aRun, false},
		{"a.b", aRun, false},
		{"é", aRun, false},
		{"default", "", false},
		{"default", "../run", false},
		{"default", "run", false},
		{"default", "00000000-0000-0000-0000-000000000000", false},
	} {
		s := specOf(t, audit.NewMemory())
		s.Tenant, s.RunID = c.tenant, c.run
		open, opened := s.OpenJournal, false
		s.OpenJournal = func(h audit.Head) (Journal, error) {
			opened = true
			return open(h)
		}
		r := Launch(t.Context(), s)
		if ok := r.Outcome == OK; ok != c.ok || opened != c.ok || !ok && (r.ExitCode != StatusInput || r.GuestExit != nil) {
			t.Errorf("tenant %q, run %q: %s %d, journal opened %v: %s", c.tenant, c.run, r.Outcome, r.ExitCode, opened,
				r.Message)
		}
		if _, err := DryRun(s); (err == nil) != c.ok {
			t.Errorf("tenant %q, run %q: a dry run says %v", c.tenant, c.run, err)
		}
	}
}
