// Package runs answers which runs there were, what each was denied, and in what
// two of them differ, from the audit log of a tenant.
//
// It prints nothing.
package runs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/run"
)

// Running is the outcome of a run that has not ended.
const Running = "running"

// A Line is one run: what it is known by, how it ended, and what it was answered.
type Line struct {
	RunID    string    `json:"run_id"`
	Agent    string    `json:"agent"`
	Outcome  string    `json:"outcome"` // [Running]: it has not ended
	ExitCode int       `json:"exit_code"`
	Allowed  int64     `json:"allowed"` // once it has ended
	Denied   int64     `json:"denied"`  // once it has ended
	WallMS   int64     `json:"wall_ms"`
	Began    time.Time `json:"began"`
	Parent   string    `json:"parent_run,omitempty"`
	Message  string    `json:"message,omitempty"`

	BundleDigest string `json:"-"` // of the agent that ran
}

// Ended reports whether the run has.
func (l *Line) Ended() bool { return l.Outcome != Running }

// LineOf is the run of a summary.
func LineOf(s *kb.RunSummary, now time.Time) Line {
	l := Line{
		RunID: s.RunID, Agent: s.Agent, Outcome: Running, ExitCode: s.ExitCode, Allowed: s.Allowed, Denied: s.Denied,
		Began: time.UnixMilli(s.BeganMS).UTC(), Parent: s.ParentRun, Message: s.Message,
		BundleDigest: s.BundleDigest,
	}
	if s.EndedMS == 0 {
		l.WallMS = max(0, now.UnixMilli()-s.BeganMS)
		return l
	}
	l.Outcome, l.WallMS = s.Outcome, max(0, s.EndedMS-s.BeganMS)
	return l
}

// List are the newest runs, at most limit (0: all), of one agent if it is named:
// the newest last.
func List(ctx context.Context, s Log, agent string, limit int, now time.Time) ([]Line, error) {
	list := []Line{}
	for sum, err := range s.Runs(ctx, kb.RunQuery{Agent: agent, Limit: limit}) {
		if err != nil {
			return nil, err
		}
		list = append(list, LineOf(&sum, now))
	}
	slices.Reverse(list)
	return list, nil
}

// One is the run id.
func One(ctx context.Context, s Log, id string, now time.Time) (Line, error) {
	last := len(id) - 1
	if last < 0 {
		return Line{}, noRun(id)
	}
	behind := id[:last] + string(id[last]+1)
	for sum, err := range s.Runs(ctx, kb.RunQuery{Before: behind, Limit: 1}) {
		if err != nil {
			return Line{}, err
		}
		if sum.RunID == id {
			return LineOf(&sum, now), nil
		}
	}
	return Line{}, noRun(id)
}

func noRun(id string) error {
	return &ask.Error{Status: run.StatusInput, Err: fmt.Errorf("no run %s in the audit log; rlp runs shows all", id)}
}

// Short is the end of a run's id, which tells it from others: the beginning is the
// time.
func Short(id string) string {
	const digits = 8
	if len(id) <= digits {
		return id
	}
	return id[len(id)-digits:]
}
