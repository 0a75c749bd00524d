package console

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/runs"
)

// shownWhy is the page that explains a decision.
type shownWhy struct {
	auditRow
	RunLink string
	ByBase  bool // the agent's own policy does not hold it
	Request string
	E       *ask.Explanation // nil: it could not be explained
	Problem string
	Policy  string // the page on which the edit can be made; "" where it cannot

	Advice     *advice // whether there is anything to do; nil: it was allowed
	Cause      string  // the untrusted content that it follows from
	Trust, How string  // what would trust that

	OfLaunch bool     // the launch itself recorded it: the agent asked for nothing
	Reasons  []string // for which the run was refused
	Grant    bool     // a profile took some of it, as that which requests start from may have
}

// An advice is what a page says of an [ask.Advice].
type advice struct{ Class, Short, Text string }

// adviceOn is the advice on a denial.
func adviceOn(d *audit.DecisionRecord, named bool) *advice {
	a := ask.Advise(d, named)
	switch a.Act {
	case ask.Decide:
		return &advice{"maybe", "Only if it should be allowed.", a.Text}
	case ask.Mend:
		return &advice{"mend", "Yes.", a.Text}
	}
	return &advice{"nothing", "Nothing, unless you expected it to be allowed.", a.Text}
}

// named reports whether what a run was given names what it was denied, as far as that
// is kept and the caller may know it.
func (c *console) named(ctx context.Context, caller *service.Caller, id, target string) bool {
	run, err := c.Runs.Run(ctx, caller, id)
	if err != nil || len(target) < 2 {
		return false
	}
	q := run.Again(caller)
	return q != nil && (strings.Contains(string(q.Input), target) || strings.Contains(string(q.InputBytes), target) ||
		slices.ContainsFunc(q.Args, func(a string) bool { return strings.Contains(a, target) }))
}

func (c *console) whyPage(r *http.Request, caller *service.Caller) (*view, error) {
	seq, err := cursor(r.PathValue("seq"))
	if err != nil || seq == 0 {
		return nil, service.ErrNotFound
	}
	id, err := c.runOf(r, caller, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	d, err := c.why(r, caller, id, seq)
	if err != nil {
		return nil, err
	}
	return &view{Page: "why", Title: "Why", Nav: "runs", Data: d}, nil
}

// why reads a record of a run and asks for its explanation.
func (c *console) why(r *http.Request, caller *service.Caller, id string, seq uint64) (*shownWhy, error) {
	log, err := c.Host.Log(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	rec, err := one(r.Context(), log, kb.Filter{Run: id, After: seq - 1})
	if err != nil {
		return nil, err
	}
	if rec == nil || rec.Seq != seq || rec.Decision == nil {
		return nil, service.ErrNotFound
	}
	d := &shownWhy{
		auditRow: rowOf(rec), RunLink: runLink(id),
		ByBase: audit.ByBase(rec.Decision.Layer, rec.Decision.Reason), Request: ask.About(rec.Decision),
	}
	if rec.Denied() {
		d.Advice = adviceOn(rec.Decision, c.named(r.Context(), caller, id, rec.Decision.Target))
		if d.Cause = rec.Decision.Label; d.Cause != "" && rec.Decision.Reason == untrusted {
			d.Trust, d.How = ask.Trust(d.Cause)
		} else {
			d.Cause = ""
		}
	}
	if rec.Decision.OfLaunch() {
		return d, d.refused(r.Context(), log)
	}
	b, err := c.bundle(r.Context(), caller, rec.Head.Agent)
	if err != nil {
		if d.E, err = c.Host.Explain(r.Context(), caller, rec.Head.Agent, ask.Query{Run: id, At: rec.Seq}); err == nil {
			return d, nil
		}
		asked := runs.Asked{Bundle: runs.Unknown, Flags: runs.FlagsOf("", caller.Tenant)}
		d.Problem = rec.Head.Agent + " is not installed here, and only what is installed can be explained on a page: " +
			asked.Explain(id, &runs.Denial{Request: d.Request})
		return d, nil
	}
	if d.E, err = c.Host.Explain(r.Context(), caller, b.Name, ask.Query{Run: id, At: rec.Seq}); err == nil {
		d.Policy = policyLink(b.Name) + "?run=" + id + "&record=" + strconv.FormatUint(seq, 10) + "#editor"
		return d, nil
	}
	d.Problem, err = unanswered(err)
	return d, err
}

// refused reads why the run was refused, if it was.
func (d *shownWhy) refused(ctx context.Context, log service.Log) error {
	d.OfLaunch, d.ByBase = true, false
	last, err := one(ctx, log, kb.Filter{Run: d.Run, Limit: 1})
	if err != nil || last == nil || last.Event == nil || last.Event.Kind != audit.KindPolicyRejected {
		return err
	}
	if d.Reasons = last.Event.Violations; len(d.Reasons) == 0 {
		d.Reasons = []string{last.Event.Message}
	}
	d.Grant = slices.ContainsFunc(d.Reasons, func(why string) bool { return strings.Contains(why, "profile:") })
	return nil
}
