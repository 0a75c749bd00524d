package launcher

import (
	"context"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/audit"
	"runloop.dev/rlp/internal/guest"
)

// What is said of an end is what ended the run: the time as it was then, and not
// an operator who did nothing.
func TestEndsAreNotBlamedOnOthers(t *testing.T) {
	for _, c := range []struct {
		outcome Outcome
		end     guest.End
		parent  string
		want    string
	}{
		{Timeout, guest.End{Kind: guest.Timeout, Given: 20 * time.Second}, "", "the run passed limits.wall_time_ms = 20000"},
		{Cancelled, guest.End{Kind: guest.Cancelled}, "", "interrupted by the operator"},
		{Cancelled, guest.End{Kind: guest.Cancelled, Err: &Ending{"nothing came"}}, "", "nothing came"},
		{Cancelled, guest.End{Kind: guest.Cancelled, Err: &Ending{"nothing came"}}, "01a2", "the run that launched this one ended"},
		{Cancelled, guest.End{Kind: guest.Cancelled}, "01a2", "the run that launched this one ended"},
	} {
		r := &run{spec: &Spec{Identity: Identity{ParentRun: c.parent}}, report: &Report{Outcome: c.outcome}}
		r.plan.Limits = caps.Limits{}.With(caps.WallTimeMS, DefaultWallMS)
		if got := r.endMessage(c.end); got != c.want {
			t.Errorf("%s: %q, want %q", c.outcome, got, c.want)
		}
	}
}

// Why a run was ended is in its report and in its last record, whether it had
// begun or not; an interruption is the control.
func TestAnEndSaysWhy(t *testing.T) {
	for want, why := range map[string]error{"interrupted": nil, "nothing came": &Ending{"nothing came"}} {
		ctx, end := context.WithCancelCause(t.Context())
		end(why)
		log := audit.NewMemory()
		r := Launch(ctx, specOf(t, log))
		last := log.Events[len(log.Events)-1]
		if r.Outcome != Cancelled || r.ExitCode != StatusCancelled || !strings.Contains(r.Message, want) || last.Message != r.Message || last.Outcome != string(Cancelled) {
			t.Errorf("%s: %s, %q, recorded %q", want, r.Outcome, r.Message, last.Message)
		}
	}
}
