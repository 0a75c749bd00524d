package ask

import (
	"context"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/run"
)

// A Forecast is how recorded runs would be decided under other layers.
type Forecast struct {
	Blocked    []Block     `json:"blocked"`
	Candidates []string    `json:"candidates"` // the layers that were tried
	Decisions  Tally       `json:"decisions"`
	Depends    []Block     `json:"depends"` // what a record leaves out could decide either way
	Passed     []OverLimit `json:"limits_passed"`
	NotListed  int64       `json:"not_listed"`
	NotTried   []string    `json:"not_tried"`
	Runs       int         `json:"runs"`
	Blocking   int         `json:"runs_blocked"`
	Incomplete int         `json:"runs_incomplete"` // recorded without all that they were allowed
}

// A Tally counts decisions.
type Tally struct {
	Blocked int64 `json:"blocked"`
	Denied  int64 `json:"denied"`
	Depend  int64 `json:"depend"`
	Stay    int64 `json:"stay"`
}

// A Block is one request that would be blocked, or may be.
type Block struct {
	Cap    string   `json:"cap"`
	Op     string   `json:"op"`
	Tool   string   `json:"tool,omitempty"`
	Target string   `json:"target"`
	Count  int64    `json:"count"`
	Runs   int      `json:"runs"`
	Layer  string   `json:"layer,omitempty"`
	Source caps.Pos `json:"source"`
	Reason string   `json:"reason,omitempty"`
	Doubt  string   `json:"doubt,omitempty"`
	First  First    `json:"first"`
}

// A First is the first record of a request.
type First struct {
	Run    string `json:"run_id"`
	RunSeq uint64 `json:"run_seq"`
	Seq    uint64 `json:"seq"`
}

// An OverLimit is a run that used more than a candidate's limit leaves.
type OverLimit struct {
	Limit string `json:"limit"`
	Most  int64  `json:"most"`
	Run   string `json:"run_id"`
	Used  int64  `json:"used"`
}

// Candidates are layers that are tried on recorded runs.
type Candidates struct {
	Layers   []*caps.Layer
	Domains  []string
	Programs run.Resolver
}

// WhatIf decides the runs that filter means once more, under candidates.
func WhatIf(ctx context.Context, log Log, filter kb.Filter, c Candidates) (*Forecast, error) {
	p, _, err := run.Canonical(run.Policy{Layers: c.Layers}, run.Resolvers{Files: jail.Canonical, Programs: c.Programs})
	if err != nil {
		return nil, hostErr(err)
	}
	p.Base = analysis.Everything(c.Domains)
	plan, err := plan(p)
	if err != nil {
		return nil, err
	}
	sight := analysis.New(plan.Effective)
	if err := decideAgain(ctx, log, filter, sight); err != nil {
		return nil, err
	}
	f := sight.Forecast()
	if f.Runs == 0 && filter.Run != "" {
		return nil, inputf("the audit log has no run %s that was asked for; rlp audit list shows all", filter.Run)
	}
	return forecast(c.Layers, f, untried(plan.Effective)), nil
}

func forecast(layers []*caps.Layer, f analysis.Forecast, untried []string) *Forecast {
	d := &Forecast{
		Candidates: []string{}, Runs: f.Runs, Blocking: f.RunsBlocked, NotListed: int64(f.More),
		NotTried: untried, Incomplete: f.Unrecorded,
		Decisions: Tally{Stay: f.Stays, Blocked: f.Blocked, Depend: f.Depends, Denied: f.Denied},
		Blocked:   []Block{}, Depends: []Block{}, Passed: []OverLimit{},
	}
	for _, l := range layers {
		d.Candidates = append(d.Candidates, l.Name)
	}
	for _, b := range f.Blocks {
		block := Block{
			Cap: b.Cap, Op: b.Op, Tool: b.Tool, Target: b.Target, Count: b.Count, Runs: b.Runs, Layer: b.Layer,
			Source: b.Pos,
			Doubt:  b.Doubt.String(), First: First{b.Run, b.RunSeq, b.Seq},
		}
		if b.Layer != "" {
			block.Reason = b.Code.String()
		}
		if b.Verdict == analysis.Blocked {
			d.Blocked = append(d.Blocked, block)
		} else {
			d.Depends = append(d.Depends, block)
		}
	}
	for _, p := range f.Passed {
		d.Passed = append(d.Passed, OverLimit{Run: p.Run, Limit: p.Limit.String(), Used: p.Used, Most: p.Most})
	}
	return d
}

// untried is what a candidate says and no record can be held against.
func untried(candidates caps.Set) []string {
	list := []string{}
	if len(candidates.Leases()) > 0 {
		list = append(list, "[leases]: a record does not say when a lease would have ended, or been used up")
	}
	if len(candidates.Constraints().Map()) > 0 {
		list = append(list, "[constraints]: a record does not say what they bound")
	}
	return list
}

// decideAgain puts the records that filter asks for to sight.
func decideAgain(ctx context.Context, log Log, filter kb.Filter, sight *analysis.Replay) error {
	decided := func(_ *audit.Glance, r *analysis.Record) error {
		sight.Decide(r)
		return nil
	}
	return eachRecord(ctx, log, filter, decided, func(r *audit.Record) error {
		if r.Event.Kind != audit.KindRunStart {
			sight.End(r.Head.RunID, r.Event.Usage)
			return nil
		}
		held, err := heldAtStart(r.Event)
		if err != nil {
			held = caps.Set{} // then every method is considered
		}
		sight.Begin(analysis.Run{ID: r.Head.RunID, Held: held})
		return nil
	})
}
