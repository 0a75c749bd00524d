package hostcalls

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/base/strictjson"
)

// DefaultDepth is max_depth where nothing says anything: how many runs may stand
// below one another under one that nobody launched.
const DefaultDepth = 8

// Bounds of a delegation.
const (
	MaxAgentInput  = 1 << 20 // bytes of JSON
	MaxAgentWords  = 1024    // in each of allow, deny and limits
	MaxAgentReport = 4 << 20 // bytes of JSON
	MaxChildren    = 1024    // that a report lists
)

// A delegateReq is one delegation as the gate judges it.
type delegateReq struct {
	Delegation
	text string // as it came: a view
}

const agentLaunchName = "agent_launch"

var agentLaunch = define(agentLaunchName, 1, caps.Agents, gated[delegateReq]{
	decode: decodeLaunch,
	touches: func(r delegateReq) (caps.Request, string) {
		return caps.Request{Family: caps.Agents, Name: r.Agent}, r.Agent
	},
	payload: func(r delegateReq) [][]byte { return [][]byte{bytesOf(r.text)} },
	budget: func(h *Host, _ delegateReq) (caps.Code, bool) {
		switch {
		case h.cfg.Agents == nil:
			return caps.Unavailable, true
		case h.depth() == 0:
			return caps.BudgetExhausted, true
		case h.budget.Crowded():
			return caps.RateLimited, true
		}
		return 0, false
	},
	done: true,
	do: func(ctx context.Context, h *Host, _ gate.Permit, r delegateReq) ([]byte, error) {
		return h.delegate(ctx, &r.Delegation)
	},
})

// decodeLaunch reads the argument of agent_launch.
func decodeLaunch(in []string) (delegateReq, error) {
	r := delegateReq{text: in[0]}
	if err := readObject(in[0], r.field); err != nil {
		return r, err
	}
	if !caps.IsName(caps.Agents, r.Agent) {
		return r, errors.New("agent: the name of an installed agent is wanted: a letter, then letters, digits, - and _, " +
			"all lower-case; never a path")
	}
	return r, nil
}

// field reads the value of one key of the request.
func (r *delegateReq) field(d *strictjson.Reader, key string) (err error) {
	switch key {
	case "agent":
		r.Agent, err = d.Text()
	case "input":
		r.Input, err = readInput(d)
	case "allow":
		r.Allow, err = capabilities(d, func(s string) error { _, err := caps.ParseGrant(s); return err })
	case "deny":
		r.Deny, err = capabilities(d, func(s string) error { _, err := caps.ParseDeny(s); return err })
	case "limits":
		err = r.limits(d)
	default:
		err = unknownKey("agent, input, allow, deny and limits")
	}
	return err
}

func (r *delegateReq) limits(d *strictjson.Reader) error {
	r.Limits = map[string]int64{}
	return d.Members(func(d *strictjson.Reader, key string) error {
		n, err := d.Whole()
		if err != nil {
			return errors.New("a whole number is wanted, 0 for none at all")
		}
		if _, _, err := caps.ParseLimit(key, int64(n)); err != nil {
			return err
		}
		r.Limits[strings.Clone(key)] = int64(n)
		return nil
	})
}

// readInput reads one JSON value whole.
func readInput(d *strictjson.Reader) ([]byte, error) {
	v, err := d.Raw()
	if err != nil {
		return nil, err
	}
	if len(v) > MaxAgentInput {
		return nil, &Fail{Errno: TooBig, Hint: fmt.Sprintf("input: more than %d bytes", MaxAgentInput)}
	}
	return []byte(v), nil
}

// capabilities reads a list of capability strings.
func capabilities(d *strictjson.Reader, check func(string) error) (list []string, err error) {
	if d.Kind() != '[' {
		return nil, errors.New("a list of capabilities is wanted")
	}
	list = []string{}
	return list, d.Items(func(d *strictjson.Reader, i int) error {
		if i == MaxAgentWords {
			return fmt.Errorf("one more than the %d that are taken", MaxAgentWords)
		}
		s, err := d.Text()
		if err == nil {
			err = check(s)
		}
		list = append(list, s)
		return err
	})
}

// depth is how many runs may still stand below this one.
func (h *Host) depth() int64 {
	if d, set := h.cfg.Limits.Get(caps.MaxDepth); set {
		return d
	}
	return DefaultDepth
}

// delegate has the agent run, and takes what it used from this run, whatever
// came of it.
func (h *Host) delegate(ctx context.Context, d *Delegation) ([]byte, error) {
	d.Within, d.Above = h.within(), h.budget
	d.Tainted = h.taintedBy()
	h.boundModel()
	got, err := aside(h, func() (*Delegated, error) { return h.cfg.Agents.Launch(ctx, d) })
	if err != nil {
		return nil, err
	}
	h.cfg.Gate.Charge(got.Calls)
	h.cfg.Gate.SpendLeases(got.LeaseUses)
	h.budget.UseLeases(d.Agent, got.LeaseUses)
	h.moved += got.Instructions
	h.launched(Child{RunID: got.RunID, Agent: d.Agent, Outcome: got.Outcome})
	h.remark = strings.TrimSpace(got.Outcome + " " + got.RunID)
	if got.RunID == "" {
		h.remark = summary(h.scrubText(got.Outcome + ": " + got.Why))
	}
	for _, w := range got.Warnings {
		h.cfg.warn(errors.New(w))
	}
	if got.Ran {
		if err := h.takeIn(caps.Agents, d.Agent); err != nil {
			return nil, err
		}
	}
	return h.discreet(got), nil
}

// within is what bounds a run that this one launches: what this one holds now,
// and what is left of its limits. A limit that the budget shares is there too,
// so that the report of the launched run says what it had.
func (h *Host) within() *caps.Layer {
	l := h.cfg.Gate.Layer("parent")
	l.Limits = h.cfg.Limits.With(caps.MaxDepth, h.depth()-1)
	if most, set := h.cfg.Limits.Get(caps.HostcallsMax); set {
		l.Limits = l.Limits.With(caps.HostcallsMax, most-h.cfg.Gate.Calls())
	}
	for _, k := range []caps.Limit{caps.NetBytes, caps.ExecSpawns, caps.KBWriteBytes} {
		if left, bounded := h.budget.Left(k); bounded {
			l.Limits = l.Limits.With(k, left)
		}
	}
	for _, k := range []caps.Limit{caps.StdoutMaxBytes, caps.StderrMaxBytes} {
		most, set := h.cfg.Limits.Get(k)
		if !set {
			most = math.MaxInt64
		}
		l.Limits = l.Limits.With(k, min(most, MaxAgentReport/4))
	}
	if h.cfg.Left != nil {
		wall, fuel, bounded := h.cfg.Left()
		l.Limits = l.Limits.With(caps.WallTimeMS, wall.Milliseconds())
		if bounded {
			l.Limits = l.Limits.With(caps.CPUFuel, fuel)
		}
	}
	return l
}

// launched keeps the line of the report.
func (h *Host) launched(c Child) {
	if len(h.children) < MaxChildren {
		h.children = append(h.children, c)
	}
}

// LeftBehind says that the run did not stop when it was over.
func (h *Host) LeftBehind() { h.budget.LeftBehind() }

// Children are the runs that the run launched, the first [MaxChildren] of them.
func (h *Host) Children() []Child { return h.children }
