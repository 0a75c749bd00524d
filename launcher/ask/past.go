package ask

import (
	"context"
	"encoding/hex"
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/run"
)

// A Past is what the records of a run say of what it held, and of when it asked the
// same.
type Past struct {
	Run   string      `json:"run_id"`
	At    uint64      `json:"at,omitempty"` // the record up to which it is told, by its number in the log
	Swaps []Swap      `json:"swaps"`
	Notes []string    `json:"notes"` // what keeps it from being exact
	Asked []AskedThen `json:"asked"`
}

// A Swap is one narrowing since the launch.
type Swap struct {
	Seq    uint64 `json:"seq"`
	RunSeq uint64 `json:"run_seq"`
	Source string `json:"source"`
	Label  string `json:"label,omitempty"`
}

// An AskedThen is a decision of the run on the very request.
type AskedThen struct {
	Seq      uint64 `json:"seq"`
	RunSeq   uint64 `json:"run_seq"`
	Op       string `json:"op"`
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
	Layer    string `json:"layer,omitempty"`
}

// A pastRun is a run as its records are read.
type pastRun struct {
	Past
	of     *Subject
	policy run.Policy
	digest string // what was held then, as the records say
}

// ExplainRun says how a run that is over, or under way, was to decide q, from the
// records of its log.
func ExplainRun(ctx context.Context, log Log, s *Subject, q Query) (*Explanation, error) {
	if q.Text == "" && q.At > 0 {
		var err error
		if q.Text, err = recorded(ctx, log, q); err != nil {
			return nil, err
		}
		q.recorded = true
	}
	requests, err := s.requests(q)
	if err != nil {
		return nil, err
	}
	p := &pastRun{Past: Past{Run: q.Run, At: q.At, Swaps: []Swap{}, Notes: []string{}, Asked: []AskedThen{}}, of: s}
	if err := p.read(ctx, log, requests); err != nil {
		return nil, err
	}
	e, err := s.explain(p.policy, requests, q)
	if err != nil {
		return nil, err
	}
	e.Past = &p.Past
	e.answered()
	return e, nil
}

// recorded is what the record of a run was about.
func recorded(ctx context.Context, log Log, q Query) (string, error) {
	for r, err := range log.Audit(ctx, kb.Filter{Run: q.Run, After: q.At - 1}) {
		switch {
		case err != nil:
			return "", err
		case r.Seq == q.At && r.Decision != nil:
			return About(r.Decision), nil
		}
		break
	}
	return "", usagef("record %d of the log is no decision of run %s", q.At, q.Run)
}

// mostAskedThen bounds how many decisions are told.
const mostAskedThen = 20

// read reads what the run held, and how it was answered when it asked the same.
func (p *pastRun) read(ctx context.Context, log Log, requests []caps.Request) error {
	var start *audit.Event
	var layers, since []*caps.Layer
	var floor *caps.Layer
	tainted := false
	newest := uint64(0)
	reader := analysis.Reader{}
	for r, err := range log.Audit(ctx, kb.Filter{Run: p.Run}) {
		if err != nil {
			return err
		}
		if p.At > 0 && r.Seq > p.At && newest > 0 {
			break
		}
		newest = r.Seq
		p.last(&r, &reader, requests)
		e := r.Event
		switch {
		case e == nil:
		case e.Kind == audit.KindRunStart:
			if err := p.ofBundle(&r); err != nil {
				return err
			}
			if layers, err = p.layers(e.Layers); err == nil {
				floor, err = readFloor(e.Floor)
			}
			if err != nil {
				return err
			}
			start, p.digest = e, r.Head.EffectiveDigest
		case e.Kind == audit.KindCapsSwap:
			p.Swaps = append(p.Swaps, Swap{r.Seq, r.RunSeq, e.Source, p.of.names.Capability(e.Label)})
			p.digest = e.After
			if e.Source == policy.Untrusted && len(e.Layers) == 0 {
				tainted = true
			} else if since, err = p.layers(e.Layers); err != nil {
				return err
			}
		}
	}
	if start == nil {
		return inputf("the audit log has no beginning of run %s; rlp audit list shows all", p.Run)
	}
	if p.At > 0 && p.At != newest {
		return usagef("record %d of the log is none of run %s; rlp audit show %[2]s prints its records", p.At, p.Run)
	}
	return p.rebuild(start, append(layers, since...), floor, tainted)
}

// ofBundle refuses to explain one agent's run by another's bundle, and says when
// it is another build.
func (p *pastRun) ofBundle(r *audit.Record) error {
	if agent := p.of.Agent(); r.Head.Agent != agent {
		return usagef("run %s is one of %s, and the bundle is %s", r.Head.RunID, r.Head.Agent, agent)
	}
	if r.Head.BundleDigest != p.of.Bundle.Digest {
		p.note("the bundle is another build than the one that ran; what its policy asked for then is from the record, " +
			"without lines")
	}
	return nil
}

func (p *pastRun) note(text string) { p.Notes = append(p.Notes, text) }

func (p *pastRun) layers(recorded []audit.Layer) ([]*caps.Layer, error) {
	var list []*caps.Layer
	for i := range recorded {
		l, err := gate.ReadLayer(&recorded[i])
		if err != nil {
			return nil, hostErr(err)
		}
		if recorded[i].Left && (p.of.names == nil || l.Name != caps.ProtectedLayer) {
			p.note("the record of " + l.Name + " was cut: it had too many entries")
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
		return nil, hostErr(err)
	}
	return l, nil
}

// rebuild makes the policy of the run again, and says when it is not what the
// records say was held.
func (p *pastRun) rebuild(start *audit.Event, layers []*caps.Layer, floor *caps.Layer, tainted bool) error {
	if len(layers) > 0 && layers[0].Name == "base" {
		p.policy.BaseLimits, layers = layers[0].Limits, layers[1:]
	}
	if tainted && floor != nil {
		layers = append(layers, floor)
	}
	base, err := entriesOf(start.Base)
	if err != nil {
		return hostErr(fmt.Errorf("run %s: %w", p.Run, err))
	}
	p.policy.Base, p.policy.Layers = placed(base, p.of.Policy.Base), layers
	plan, err := plan(p.policy)
	if err != nil {
		return err
	}
	if d := plan.Effective.Digest(); hex.EncodeToString(d[:]) != p.digest {
		p.note("what is rebuilt from the record is not what was held (its digest differs): take what follows as likely")
		if len(start.Layers) == 0 && start.Floor == nil {
			p.note("the record may be older than layers in records: a layer that refuses may be missing here")
		}
	}
	return nil
}

// placed gives entries of a record the lines at which the bundle's policy has
// them, if it has.
func placed(base, written []caps.Entry) []caps.Entry {
	for i := range base {
		for _, e := range written {
			if e.Grant.Family == base[i].Grant.Family && e.Grant.Scope == base[i].Grant.Scope &&
				base[i].Grant.Modes&^e.Grant.Modes == 0 {
				base[i].Pos = e.Pos
				break
			}
		}
	}
	return base
}

// last notes how the run was answered when it asked the same.
func (p *pastRun) last(r *audit.Record, reader *analysis.Reader, requests []caps.Request) {
	d := r.Decision
	if d == nil {
		return
	}
	a, ok := reader.Ask(decisionOf(d))
	if !ok || a.Doubt == analysis.Name {
		return
	}
	for _, q := range requests {
		if q.Family == a.Family && q.Name == a.Name && a.Modes.Has(q.Mode) {
			if len(p.Asked) == mostAskedThen {
				p.Asked = p.Asked[1:]
			}
			p.Asked = append(p.Asked, AskedThen{
				r.Seq, r.RunSeq, d.Op, verdict(!d.Deny), d.Reason, p.of.layerName(d.Layer),
			})
			return
		}
	}
}
