//go:build !slim

package main

import (
	"context"
	"encoding/hex"
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/audit"
	"runloop.dev/rlp/internal/foresight"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
)

// A pastRun is what the records of one run say that it held.
type pastRun struct {
	id     string
	policy launcher.Policy
	at     uint64 // the record up to which it is told
	digest string // what was held then, as the records say
	swaps  []swapped
	notes  []string // what keeps it from being exact
	asked  []askedThen
}

// swapped is one narrowing since the launch.
type swapped struct {
	RunSeq uint64 `json:"run_seq"`
	Source string `json:"source"`
	Label  string `json:"label,omitempty"`
}

// askedThen is a decision of the run on the very request.
type askedThen struct {
	RunSeq   uint64 `json:"run_seq"`
	Op       string `json:"op"`
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
	Layer    string `json:"layer,omitempty"`
}

// mostAskedThen bounds how many decisions are told.
const mostAskedThen = 20

// past reads what the run of q held, and how it was answered when it asked the
// same.
func (a *app) past(ctx context.Context, s *kb.Store, c *composition, q inquiry) (*pastRun, error) {
	p := &pastRun{id: q.run, at: q.at}
	var start *audit.Event
	var layers, since []*caps.Layer
	var floor *caps.Layer
	tainted := false
	reader := foresight.Reader{}
	for r, err := range s.Audit(ctx, kb.Filter{Run: q.run}) {
		if err != nil {
			return nil, err
		}
		if q.at > 0 && r.RunSeq > q.at {
			break
		}
		p.last(&r, &reader, q.requests)
		e := r.Event
		switch {
		case e == nil:
		case e.Kind == audit.KindRunStart:
			if err := a.ofBundle(c, &r); err != nil {
				return nil, err
			}
			if layers, err = readLayers(p, e.Layers); err == nil {
				floor, err = readFloor(e.Floor)
			}
			if err != nil {
				return nil, err
			}
			start, p.digest = e, r.Head.EffectiveDigest
			p.compare(c, &r)
		case e.Kind == audit.KindCapsSwap:
			p.swaps = append(p.swaps, swapped{r.RunSeq, e.Source, e.Label})
			p.digest = e.After
			if e.Source == policy.Untrusted && len(e.Layers) == 0 {
				tainted = true
			} else if since, err = readLayers(p, e.Layers); err != nil {
				return nil, err
			}
		}
	}
	if start == nil {
		return nil, inputErr(fmt.Errorf("the audit log has no beginning of run %s; rlp audit list shows all", q.run))
	}
	return p, p.rebuild(c, start, append(layers, since...), floor, tainted)
}

// ofBundle refuses to explain one agent's run by another's bundle.
func (a *app) ofBundle(c *composition, r *audit.Record) error {
	if agent := c.bundle.Manifest.Agent.String(); r.Head.Agent != agent {
		return usagef("run %s is one of %s, and the bundle is %s", r.Head.RunID, r.Head.Agent, agent)
	}
	return nil
}

// compare says when the bundle is not the one that ran.
func (p *pastRun) compare(c *composition, r *audit.Record) {
	if r.Head.BundleDigest != c.bundle.Digest {
		p.notes = append(p.notes, "the bundle is another build than the one that ran; what its policy asked for then is from the record, without lines")
	}
}

func readLayers(p *pastRun, recorded []audit.Layer) ([]*caps.Layer, error) {
	var list []*caps.Layer
	for i := range recorded {
		l, err := gate.ReadLayer(&recorded[i])
		if err != nil {
			return nil, inputErr(err)
		}
		if recorded[i].Left {
			p.notes = append(p.notes, "the record of "+l.Name+" was cut: it had too many entries")
		}
		list = append(list, l)
	}
	return list, nil
}

// readFloor is the floor of the run; the built-in one is recorded by its name.
func readFloor(recorded *audit.Layer) (*caps.Layer, error) {
	if recorded == nil {
		return nil, nil
	}
	if policy.IsFloor(recorded.Name) && len(recorded.Bounds)+len(recorded.Deny) == 0 && recorded.File != "" {
		return policy.BuiltinFloor(recorded.Name), nil
	}
	l, err := gate.ReadLayer(recorded)
	if err != nil {
		return nil, inputErr(err)
	}
	return l, nil
}

// rebuild makes the policy of the run again, and says when it is not what the
// records say was held.
func (p *pastRun) rebuild(c *composition, start *audit.Event, layers []*caps.Layer, floor *caps.Layer, tainted bool) error {
	if len(layers) > 0 && layers[0].Name == "base" {
		p.policy.BaseLimits, layers = layers[0].Limits, layers[1:]
	}
	if tainted && floor != nil {
		layers = append(layers, floor)
	}
	base, err := entriesOf(start.Base)
	if err != nil {
		return inputErr(fmt.Errorf("run %s: %w", p.id, err))
	}
	p.policy.Base, p.policy.Layers = placed(base, c), layers
	plan, err := launcher.NewPlan(p.policy)
	if err != nil {
		return inputErr(err)
	}
	if d := plan.Effective.Digest(); hex.EncodeToString(d[:]) != p.digest {
		p.notes = append(p.notes, "what is rebuilt from the record is not what was held (its digest differs): take what follows as likely")
		if len(start.Layers) == 0 && start.Floor == nil {
			p.notes = append(p.notes, "the record may be older than layers in records: a layer that refuses may be missing here")
		}
	}
	return nil
}

// placed gives entries of a record the lines at which the bundle's policy has
// them, if it has.
func placed(base []caps.Entry, c *composition) []caps.Entry {
	for i := range base {
		for _, e := range c.policy.Base {
			if e.Grant.Family == base[i].Grant.Family && e.Grant.Scope == base[i].Grant.Scope && base[i].Grant.Modes&^e.Grant.Modes == 0 {
				base[i].Pos = e.Pos
				break
			}
		}
	}
	return base
}

// last notes how the run was answered when it asked the same.
func (p *pastRun) last(r *audit.Record, reader *foresight.Reader, requests []caps.Request) {
	d := r.Decision
	if d == nil {
		return
	}
	a, ok := reader.Ask(decisionOf(d))
	if !ok || a.Doubt == foresight.Name {
		return
	}
	for _, q := range requests {
		if q.Family == a.Family && q.Name == a.Name && a.Modes.Has(q.Mode) {
			if len(p.asked) == mostAskedThen {
				p.asked = p.asked[1:]
			}
			p.asked = append(p.asked, askedThen{r.RunSeq, d.Op, verdict(!d.Deny), d.Reason, d.Layer})
			return
		}
	}
}

// explainPast explains what a run that is over, or under way, was answered.
func (a *app) explainPast(ctx context.Context, c *composition, q inquiry) error {
	return a.withStore(ctx, auditFlags{run: q.run}, func(ctx context.Context, s *kb.Store, f kb.Filter) error {
		q.run = f.Run
		p, err := a.past(ctx, s, c, q)
		if err != nil {
			return err
		}
		plan, err := launcher.NewPlan(p.policy)
		if err != nil {
			return inputErr(err)
		}
		return a.explain(c, plan, p.policy, q, p)
	})
}
