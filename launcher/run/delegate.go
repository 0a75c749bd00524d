package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/engine/guest"
)

// A Parent is the run that launches another one, as far as the other is bound
// by it. It is one more layer, and what it pays for.
type Parent struct {
	Identity
	*hostcalls.Delegation
}

// Bind makes the run of s one that p launches: it is met with what p holds, has
// p's trace, and begins marked if p is.
func (p Parent) Bind(s *Spec) {
	s.ParentRun, s.TraceID = p.RunID, p.TraceID
	s.Policy.Within, s.Above, s.Taint.Cause = p.Layer(), p.Above, p.Tainted
	s.Policy.Layers = leftOf(s.Policy.Layers, p.Above.LeaseUses(p.Delegation.Agent))
}

// leftOf are layers with what is left of their leases: those of an agent are one
// account for all its runs below one root, or each launch would begin it anew.
func leftOf(layers []*caps.Layer, used map[caps.Grant]int64) []*caps.Layer {
	out := slices.Clone(layers)
	for i, l := range out {
		if len(l.Leases) == 0 || len(used) == 0 {
			continue
		}
		left := *l
		left.Leases = slices.Clone(l.Leases)
		for k := range left.Leases {
			if lease := &left.Leases[k]; lease.MaxUses != caps.Unbounded {
				lease.MaxUses = max(0, lease.MaxUses-used[lease.Grant])
			}
		}
		out[i] = &left
	}
	return out
}

// Layer is what p holds, under the name by which reports and records know it.
func (p Parent) Layer() *caps.Layer {
	l := *p.Within
	l.Name, l.Sum = caps.SumPrefix+p.Identity.Agent, true
	l.Bounds = append([]caps.Bound(nil), l.Bounds...)
	for i := range l.Bounds {
		if l.Bounds[i].Pos == (caps.Pos{}) {
			l.Bounds[i].Pos.File = "run " + p.RunID
		}
	}
	return &l
}

// grace is how long the guest may take to stop. A run that another one launched
// has less than that one, which waits for it: each ends before the one above gives
// up on it.
func (s *Spec) grace() time.Duration {
	const less, least = 100 * time.Millisecond, 100 * time.Millisecond
	return max(guest.DefaultGrace-time.Duration(s.Above.Depth())*less, least)
}

// Delegated is the report as the run that launched this one is told it, and
// what it pays. The document is at most [hostcalls.MaxAgentReport] long.
func (r *Report) Delegated(told *Report) *hostcalls.Delegated {
	return &hostcalls.Delegated{
		RunID: r.RunID, Outcome: string(r.Outcome), Why: r.Message, Ran: r.Spent.Ran,
		Calls: r.Spent.Calls, Instructions: r.Spent.Instructions, LeaseUses: r.Spent.LeaseUses,
		Report: told.within(hostcalls.MaxAgentReport), Less: told.less("the rest of the report would show a secret of this run"),
	}
}

// less is the report without what the agent, its bundle and its policy say, and
// why it is.
func (r *Report) less(why string) []byte {
	text, _ := json.Marshal(&Report{ // words and numbers of this program's own, which are JSON
		RunID: r.RunID, TraceID: r.TraceID, Tenant: r.Tenant, Agent: r.Agent, Outcome: r.Outcome, ExitCode: r.ExitCode,
		GuestExit: r.GuestExit,
		Usage:     r.Usage, Lane: r.Lane, Message: why,
	})
	return text
}

// within is the report as JSON of at most so many bytes: what is said at length
// is left out first, and the report says so. There is always one, for the run was
// made and is paid for.
func (r *Report) within(most int) []byte {
	cut, warnings := *r, r.Warnings
	for i, drop := range []func(){
		func() {},
		func() { cut.Changes = []Change{} },
		func() { cut.Base, cut.Except, warnings = []string{}, nil, nil },
		func() { cut.Tools, cut.Violations = nil, nil },
		func() { cut.Stderr, cut.Usage.StderrTruncated = "", true },
		func() { cut.Effective, cut.Children = []string{}, nil },
		func() { cut.Stdout, cut.Usage.StdoutTruncated = "", true },
		func() { cut.Result = nil },
	} {
		if drop(); i > 0 {
			cut.Warnings = append(slices.Clone(warnings),
				fmt.Sprintf("the report is longer than %d bytes; some of it is left out", most))
		}
		text, err := json.Marshal(&cut)
		if err != nil {
			return r.less("the report is no JSON: " + err.Error())
		}
		if len(text) <= most {
			return text
		}
	}
	return r.less(fmt.Sprintf("the report is longer than %d bytes", most))
}
