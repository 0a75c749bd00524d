package ask

import (
	"context"
	"fmt"
	"strings"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/run"
)

// WholeRun finds the run that the beginning of an id means.
func WholeRun(ctx context.Context, s *kb.Store, id string) (string, error) {
	const whole = 36
	if id == "" || len(id) >= whole {
		return id, nil
	}
	found := ""
	for r, err := range s.Glances(ctx, kb.Filter{}) {
		if err != nil {
			return "", err
		}
		if string(r.Run) != found && strings.HasPrefix(string(r.Run), id) {
			other := string(r.Run)
			if found != "" {
				return "", &Error{Status: run.StatusUsage, Err: fmt.Errorf("more than one run begins with %s: %s, %s", id,
					found, other)}
			}
			found = other
		}
	}
	if found == "" {
		return "", &Error{
			Status: run.StatusInput,
			Err:    fmt.Errorf("no run in the audit log begins with %s; rlp audit list shows all", id),
		}
	}
	return found, nil
}
