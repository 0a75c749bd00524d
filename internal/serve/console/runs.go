package console

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/runs"
)

const (
	runRows = 50
	// runReach bounds how many stored runs a filter may pass over for one page.
	runReach = 5000
)

// A runList is the page of runs.
type runList struct {
	Agent, State   string
	Rows           []runRow
	Older, Newest  string
	Active, Queued int
	States         []choice
	Live           bool // it is the newest page, which follows what happens
	Reached        bool // the filter passed over as much as one page may
	Looked         int  // at so many stored runs
	oldest         string
}

type choice struct {
	Value, Text string
	Chosen      bool
}

// A runRow is one run, from memory or from the log.
type runRow struct {
	ID, Agent, Parent, Caller string
	State                     string // queued, running, ok, refused, failed, unfinished
	Outcome, Message          string
	Began                     time.Time
	Took                      int64
	Allowed, Denied           int64
	ExitCode                  int
}

// Under reports whether the run is not over.
func (r *runRow) Under() bool { return r.State == "queued" || r.State == "running" }

// Word is how it is or how it ended, in a word.
func (r *runRow) Word() string {
	if r.State == "failed" && r.Outcome != "" {
		return r.Outcome
	}
	return r.State
}

func (c *console) runsPage(r *http.Request, caller *service.Caller) (*view, error) {
	q := r.URL.Query()
	l := runList{Agent: q.Get("agent"), State: q.Get("state")}
	before := q.Get("before")
	l.States = []choice{
		{"", "any state", false},
		{"active", "under way", false},
		{"ok", "ended well", false},
		{"bad", "refused or failed", false},
		{"denied", "was denied something", false},
	}
	for i := range l.States {
		l.States[i].Chosen = l.States[i].Value == l.State
	}
	switch {
	case l.Agent != "" && !whole(l.Agent, nameLetter):
		return nil, &badRequest{"agent is the name of an agent, such as notes_digest"}
	case !slices.ContainsFunc(l.States, func(c choice) bool { return c.Chosen }):
		return nil, &badRequest{"state is active, ok, bad or denied, or is left out"}
	case before != "" && (!whole(before, lowerHex) || len(before) != 36):
		return nil, &badRequest{"before is a whole run id"}
	}
	if err := c.list(r.Context(), caller, &l, before); err != nil {
		return nil, err
	}
	q.Del("before")
	l.Live, l.Newest = before == "", "/ui/runs?"+q.Encode()
	switch n := len(l.Rows); {
	case n == runRows:
		q.Set("before", l.Rows[n-1].ID)
	case l.Reached: // what was passed over is not looked at again
		q.Set("before", l.oldest)
	}
	if q.Has("before") {
		l.Older = "/ui/runs?" + q.Encode()
	}
	return &view{Page: "runs", Title: "Runs", Nav: "runs", Data: l}, nil
}

// list joins the runs that are under way with those of the log.
func (c *console) list(ctx context.Context, caller *service.Caller, l *runList, before string) error {
	known := map[string]runRow{}
	for _, s := range c.Runs.Runs(ctx, caller) {
		row := rowOfState(&s)
		switch row.State {
		case "running":
			l.Active++
		case "queued":
			l.Queued++
		}
		if before == "" || row.ID < before {
			known[row.ID] = row
		}
	}
	log, err := c.Host.Log(ctx, caller)
	if err != nil {
		return err
	}
	for s, err := range log.Runs(ctx, kb.RunQuery{Before: before, Agent: l.Agent, Limit: l.reach()}) {
		if err != nil {
			return err
		}
		row := rowOfSummary(&s)
		if live, ok := known[s.RunID]; ok && (live.Under() || row.Under()) {
			row = live
		} else if ok {
			row.Caller = live.Caller
		}
		delete(known, s.RunID)
		l.Looked, l.oldest = l.Looked+1, s.RunID
		if l.wants(&row) {
			l.Rows = append(l.Rows, row)
		}
		if len(l.Rows) == runRows {
			break
		}
	}
	l.Reached = l.Looked == l.reach()
	for _, row := range known { // that are not in the log yet
		if l.wants(&row) && (l.oldest == "" || row.ID > l.oldest || len(l.Rows) < runRows) {
			l.Rows = append(l.Rows, row)
		}
	}
	slices.SortFunc(l.Rows, func(a, b runRow) int { return strings.Compare(b.ID, a.ID) })
	l.Rows = l.Rows[:min(len(l.Rows), runRows)]
	return nil
}

// reach is how many stored runs are looked at for one page.
func (l *runList) reach() int {
	if l.State == "" {
		return runRows
	}
	return runReach
}

func (l *runList) wants(r *runRow) bool {
	if l.Agent != "" && r.Agent != l.Agent {
		return false
	}
	switch l.State {
	case "active":
		return r.Under()
	case "ok":
		return r.State == "ok"
	case "bad":
		return r.State == "failed" || r.State == "refused"
	case "denied":
		return r.Denied > 0
	}
	return true
}

func rowOfSummary(s *kb.RunSummary) runRow {
	row := runRow{
		ID: s.RunID, Agent: s.Agent, Parent: s.ParentRun, Outcome: s.Outcome, Message: s.Message, ExitCode: s.ExitCode,
		Began: time.UnixMilli(s.BeganMS).UTC(), Allowed: s.Allowed, Denied: s.Denied, State: runs.StateOf(s),
	}
	if s.EndedMS > 0 {
		row.Took = s.EndedMS - s.BeganMS
	}
	return row
}

func rowOfState(s *service.State) runRow {
	row := runRow{
		ID: s.RunID, Agent: s.Agent, Parent: s.ParentRun, Caller: s.Caller, State: s.State, Outcome: string(s.Outcome),
		Message: s.Message, ExitCode: s.ExitCode,
		Began: s.QueuedAt.Time.UTC(), Took: s.WallMS, Allowed: s.Allowed, Denied: s.Denied,
	}
	if s.State == service.Done {
		row.State = runs.EndState("", row.Outcome)
	}
	if !s.StartedAt.IsZero() {
		row.Began = s.StartedAt.Time.UTC()
	}
	return row
}
