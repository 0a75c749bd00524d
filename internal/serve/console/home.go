package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/runs"
)

// What the home page looks at and shows at most.
const (
	homeRuns    = 1000
	homeRecords = 4000
	homeAgents  = 50
	homeTop     = 8
	homeLatest  = 6
)

// A span is a window of time until now, in so many parts.
type span struct {
	name, text string
	long       time.Duration
	parts      int
}

// spans are those that the home page offers.
func spans() []span {
	return []span{
		{"1h", "hour", time.Hour, 30},
		{"24h", "24 hours", 24 * time.Hour, 24},
		{"7d", "7 days", 7 * 24 * time.Hour, 28},
		{"30d", "30 days", 30 * 24 * time.Hour, 30},
	}
}

// spanOf is the one that a request names, else a day.
func spanOf(name string) (span, error) {
	if name == "" {
		name = "24h"
	}
	for _, s := range spans() {
		if s.name == name {
			return s, nil
		}
	}
	return span{}, &badRequest{"span is 1h, 24h, 7d or 30d, or is left out"}
}

// shownHome is the home page.
type shownHome struct {
	*runs.Activity
	Span     string // in words
	Spans    []choice
	Bars     []bar
	MostRuns int   // of a bar
	MostDeny int64 // the same of denials
	OK, Bad  int
	Denied   int64
	Denials  []refusal
	Needs    []need
	Latest   []runRow
	Agents   []health
	Launch   []service.Agent // that can be launched
	More     bool            // agents that are not looked at
	Waiting  int
	First    bool // nothing ran yet
}

// A bar is one part of the time of the charts.
type bar struct {
	*runs.Step
	Link     string
	X, Width int
	OKTop, OKTall, BadTop, BadTall,
	ActiveTop, ActiveTall, DenyTop, DenyTall float64
}

// A refusal is what was denied, with the page that explains it.
type refusal struct {
	runs.Refusal
	By  string
	Why string
}

// health is an agent with how its runs ended.
type health struct {
	runs.Health
	Runs int
	Good int // in a hundred, of those that ended
}

// A need is what somebody has to look at, and where.
type need struct {
	What, About, Do string
	Link, Text      string
}

func (c *console) homePage(r *http.Request, caller *service.Caller) (*view, error) {
	ctx := r.Context()
	span, err := spanOf(r.URL.Query().Get("span"))
	if err != nil {
		return nil, err
	}
	log, err := c.Host.Log(ctx, caller)
	if err != nil {
		return nil, err
	}
	now := c.Now().UTC()
	d := &shownHome{Span: span.text}
	for _, s := range spans() {
		d.Spans = append(d.Spans, choice{s.name, s.text, s.name == span.name})
	}
	if d.Activity, err = runs.Look(ctx, log, runs.Window{
		Since: now.Add(-span.long), Now: now, Parts: span.parts, MostRuns: homeRuns, MostRecords: homeRecords,
	}); err != nil {
		return nil, err
	}
	d.charts()
	d.tables()
	latest := runList{}
	if err := c.list(ctx, caller, &latest, ""); err != nil {
		return nil, err
	}
	d.Latest = latest.Rows[:min(len(latest.Rows), homeLatest)]
	d.Waiting, d.First = latest.Queued, !d.Ever && len(latest.Rows) == 0
	if err := c.needs(ctx, caller, d, &latest); err != nil {
		return nil, err
	}
	return &view{Page: "home", Title: "Home", Nav: "home", Data: d}, nil
}

// tall is how tall the charts are, in units of their own.
const tall = 60

// charts makes the bars, as tall as the tallest part allows.
func (d *shownHome) charts() {
	for i := range d.Steps {
		s := &d.Steps[i]
		d.MostRuns, d.MostDeny = max(d.MostRuns, s.Runs()), max(d.MostDeny, s.Denied)
		d.OK, d.Bad, d.Denied = d.OK+s.OK, d.Bad+s.Bad, d.Denied+s.Denied
	}
	long := d.Now.Sub(d.Since) / time.Duration(len(d.Steps))
	for i := range d.Steps {
		s := &d.Steps[i]
		b := bar{Step: s, X: 10*i + 1, Width: 8, Link: "/ui/runs?before=" + idBefore(s.From.Add(long))}
		high, denied := tall/float64(max(1, d.MostRuns)), tall/float64(max(1, d.MostDeny))
		b.OKTall, b.BadTall, b.ActiveTall = high*float64(s.OK), high*float64(s.Bad), high*float64(s.Active)
		b.OKTop = tall - b.OKTall
		b.BadTop = b.OKTop - b.BadTall
		b.ActiveTop = b.BadTop - b.ActiveTall
		b.DenyTall = denied * float64(s.Denied)
		b.DenyTop = tall - b.DenyTall
		d.Bars = append(d.Bars, b)
	}
}

// tables makes the rows of what was denied and of the agents.
func (d *shownHome) tables() {
	for _, f := range d.Top[:min(len(d.Top), homeTop)] {
		d.Denials = append(d.Denials, refusal{f, voterOf(f.Layer, f.Reason), whyLink(f.Run, f.Seq)})
	}
	for _, h := range d.Activity.Agents[:min(len(d.Activity.Agents), homeTop)] {
		n := health{Health: h, Runs: h.OK + h.Bad + h.Active}
		if ended := h.OK + h.Bad; ended > 0 {
			n.Good = 100 * h.OK / ended
		}
		d.Agents = append(d.Agents, n)
	}
}

// needs finds what somebody has to look at.
func (c *console) needs(ctx context.Context, caller *service.Caller, d *shownHome, l *runList) error {
	agents, err := c.Host.SomeAgents(ctx, caller, service.AgentQuery{Limit: homeAgents + 1})
	if err != nil {
		return err
	}
	d.More = len(agents) > homeAgents
	agents = agents[:min(len(agents), homeAgents)]
	changed, err := c.Host.ChangedServers(ctx, caller)
	if err != nil {
		return err
	}
	c.told.Lock()
	verified, known := c.verified[caller.Tenant]
	c.told.Unlock()
	if known && !verified.OK {
		d.need("The log failed its verification", "", "", "/ui/log#verified", "See what is wrong")
	}
	for _, s := range changed {
		d.need("An MCP server changed its tools", s.Server+": "+few(s.Tools),
			"Runs are refused its tools until somebody runs rlp mcp accept "+s.Server, "", "")
	}
	for _, a := range agents {
		if a.Problem == "" {
			d.Launch = append(d.Launch, a)
		} else {
			d.need("An agent cannot be launched", a.Name+": "+a.Problem, "", "/ui/agents/"+url.PathEscape(a.Name), "Open it")
		}
	}
	if l.Queued > 0 {
		d.need("Runs wait for a worker", printable.Count(l.Queued, "run")+", and as many run as may", "",
			"/ui/runs?state=active", "Show what is under way")
	}
	installed := func(name string) bool {
		return slices.ContainsFunc(d.Launch, func(a service.Agent) bool { return a.Name == name })
	}
	for _, u := range d.Unused {
		if installed(u.Agent) {
			d.need("Grants that nothing used", fmt.Sprintf("%s, in its last %d runs: %s", u.Agent, u.Runs, few(u.Grants)),
				"", policyLink(u.Agent)+"?from=used#editor", "Begin an override with what was used")
		}
	}
	return nil
}

// mostNeeds bounds how many things of one page somebody has to look at.
const mostNeeds = 12

func (d *shownHome) need(what, about, do, link, text string) {
	if len(d.Needs) < mostNeeds {
		d.Needs = append(d.Needs, need{what, about, do, link, text})
	}
}
