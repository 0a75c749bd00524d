package run

import (
	"context"
	"errors"
)

// An Ending is the cause of a context whose end is no interruption by the
// operator: what the report and the record of a run then say. It counts as
// [context.Canceled] wherever that is asked for.
type Ending struct{ Why string }

func (e *Ending) Error() string { return e.Why }

// Is makes it a cancellation.
func (e *Ending) Is(target error) bool { return target == context.Canceled }

func endingOf(err error, otherwise string) string {
	var e *Ending
	if errors.As(err, &e) {
		return e.Why
	}
	return otherwise
}
