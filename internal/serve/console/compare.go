package console

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/runs"
)

// What a comparison looks at and shows at most.
const (
	compareReach   = 500    // runs before, for one of the same agent
	compareOthers  = 20     // of them to choose from
	compareRecords = 50_000 // of each run
	mostDiffs      = 80
)

// shownCompare is the page of how two runs differ.
type shownCompare struct {
	*runs.Diff
	Of     string // the run that is compared; "": one of Others is to be chosen
	With   string // "": there is none to compare it with
	Agent  string
	More   int          // differences that are not listed
	Others []otherRun   // to compare it with
	Sides  []comparedAt // both
}

// comparedAt is one of the two runs.
type comparedAt struct {
	runs.Line
	Name string
}

// otherRun is a choice.
type otherRun struct {
	runs.Line
	Chosen bool
}

func (c *console) comparePage(r *http.Request, caller *service.Caller) (*view, error) {
	q := r.URL.Query()
	d := &shownCompare{Of: q.Get("of"), With: q.Get("with")}
	for _, id := range []string{d.Of, d.With} {
		if id != "" && (!whole(id, lowerHex) || len(id) != 36) {
			return nil, &badRequest{"of and with are whole run ids"}
		}
	}
	log, err := c.Host.Log(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	if d.Of == "" { // none was chosen yet
		for s, err := range log.Runs(r.Context(), kb.RunQuery{Limit: compareOthers}) {
			if err != nil {
				return nil, err
			}
			d.Others = append(d.Others, otherRun{Line: runs.LineOf(&s, c.Now())})
		}
		return &view{Page: "compare", Title: "Compare", Nav: "runs", Data: d}, nil
	}
	if err := c.compare(r.Context(), log, d); err != nil {
		var none *ask.Error
		if errors.As(err, &none) {
			return nil, service.ErrNotFound
		}
		return nil, err
	}
	return &view{Page: "compare", Title: "Compare", Nav: "runs", Data: d}, nil
}

// compare finds a run to compare with, unless one is named, and how they differ.
func (c *console) compare(ctx context.Context, log service.Log, d *shownCompare) error {
	one, err := runs.One(ctx, log, d.Of, c.Now())
	if err != nil {
		return err
	}
	d.Agent = one.Agent
	for s, err := range log.Runs(ctx, kb.RunQuery{Before: d.Of, Limit: compareReach}) {
		if err != nil {
			return err
		}
		if s.Agent != d.Agent {
			continue
		}
		if d.With == "" {
			d.With = s.RunID
		}
		d.Others = append(d.Others, otherRun{runs.LineOf(&s, c.Now()), s.RunID == d.With})
		if len(d.Others) == compareOthers {
			break
		}
	}
	if d.With == "" {
		return nil
	}
	d.Diff, err = runs.Comparison{Log: log, Now: c.Now(), Most: compareRecords}.Of(ctx, d.With, d.Of)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(d.Others, func(o otherRun) bool { return o.Chosen }) { // of another agent, or later
		d.Others = slices.Insert(d.Others, 0, otherRun{d.A, true})
	}
	d.Calls, d.More = clip(d.Calls, mostDiffs)
	d.Sides = []comparedAt{{d.A, "Before"}, {d.B, "This run"}}
	return nil
}
