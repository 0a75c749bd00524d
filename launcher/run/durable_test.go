package run

import (
	"errors"
	"slices"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
)

// A synced log remembers how much of it was on disk when it was closed.
type synced struct {
	*audit.Memory
	kept  int
	fails error
}

func (s *synced) Sync() error {
	s.kept = len(s.Events)
	return s.fails
}

func (s *synced) Close() error {
	if s.kept != len(s.Events) {
		return errors.New("closed with records that are not on disk")
	}
	return nil
}

// Whatever the durability, all of a run is on disk when its launch returns, the
// record of its end included; if the disk fails the launch says so.
func TestAnEndedRunIsOnDisk(t *testing.T) {
	for _, d := range []audit.Durability{audit.PerRun, audit.PerEffect, audit.PerRecord} {
		for _, fails := range []error{nil, errors.New("the disk is gone")} {
			log := &synced{Memory: audit.NewMemory(), fails: fails}
			s := specOf(t, nil, "fs:read:/")
			s.Durability = d
			s.OpenJournal = func(audit.Head) (Journal, error) { return log, nil }
			r := Launch(t.Context(), s)
			if !slices.Equal(kinds(log.Memory), []string{audit.KindRunStart, audit.KindRunComplete}) || log.kept != 2 {
				t.Errorf("%s: %d of %v on disk", d, log.kept, kinds(log.Memory))
			}
			if failed := r.Outcome == AuditFailed && r.ExitCode == StatusAudit; failed != (fails != nil) {
				t.Errorf("%s, %v: %s, exit %d: %s", d, fails, r.Outcome, r.ExitCode, r.Message)
			}
		}
	}
}
