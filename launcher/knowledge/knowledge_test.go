package knowledge

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/source"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// Each answer of the store has the exit status that docs/kb.md gives it.
func TestStatusOfStoreAnswers(t *testing.T) {
	for err, want := range map[error]int{
		nil: run.StatusOK, kb.ErrUnavailable: run.StatusUnavailable, kb.ErrVersion: run.StatusUnavailable,
		kb.ErrSchema: run.StatusUnavailable, kb.ErrDomain: run.StatusUsage, kb.ErrInvalid: run.StatusUsage,
		kb.ErrBackup: run.StatusInput, source.ErrInput: run.StatusInput, kb.ErrDamaged: run.StatusFinding,
		fmt.Errorf("%w: %w", kb.ErrBackup, kb.ErrInvalid): run.StatusInput, kb.ErrConflict: run.StatusFinding,
		fs.ErrNotExist: run.StatusFinding, compose.Usagef("x"): run.StatusUsage,
	} {
		got := run.StatusOK
		if err != nil {
			got = run.StatusFinding
			var se *compose.Error
			if errors.As(status(fmt.Errorf("doing: %w", err)), &se) {
				got = se.Status
			}
		} else if status(nil) != nil {
			t.Error("nothing wrong is an error")
		}
		if got != want {
			t.Errorf("%v: exit status %d, want %d", err, got, want)
		}
	}
}
