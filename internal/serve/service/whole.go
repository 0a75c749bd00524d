package service

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
)

// wholeTime bounds how long the end of an id is looked for in a log of very many runs.
const wholeTime = 2 * time.Second

// Listing has the runs that a service holds in memory: a [Service] does.
type Listing interface {
	Runs(ctx context.Context, c *Caller) []State
}

// Logs has the log of a caller's tenant: a [Host] does.
type Logs interface {
	Log(ctx context.Context, c *Caller) (Log, error)
}

// WholeRun is the id of the run that id means to c: whole, or its beginning or its
// end, as any page, list or message prints it. Only runs that c may know of are
// candidates. An id that is whole is not looked for.
func WholeRun(ctx context.Context, s Listing, h Logs, c *Caller, id string) (string, error) {
	if id == "" || len(id) >= ask.WholeID {
		return id, nil
	}
	var own []string
	for _, st := range s.Runs(ctx, c) {
		own = append(own, st.RunID)
	}
	var log ask.Runs = noRuns{}
	if c.Can(Read) || c.Can(Operate) {
		var err error
		if log, err = h.Log(ctx, c); err != nil {
			return "", err
		}
	}
	limited, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	whole, err := ask.WholeRun(limited, log, id, own...)
	var wrong *ask.Error
	switch {
	case errors.As(err, &wrong) && wrong.Status == launcher.StatusUsage:
		return "", FieldErrors{{"run_id", wrong.Error()}}
	case errors.As(err, &wrong):
		return "", &NoRunError{id}
	case err != nil && ctx.Err() == nil && limited.Err() != nil:
		return "", FieldErrors{{"run_id", fmt.Sprintf("there are too many runs to find the end of an id among in %s; "+
			"write its beginning, or all of it", wholeTime)}}
	}
	return whole, err
}

// noRuns is the log of who may not read it.
type noRuns struct{}

// Runs implements [ask.Runs].
func (noRuns) Runs(context.Context, kb.RunQuery) iter.Seq2[kb.RunSummary, error] {
	return func(func(kb.RunSummary, error) bool) {}
}
