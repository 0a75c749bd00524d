//go:build !slim

package main

import (
	"fmt"
	"slices"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/jail"
	"runloop.dev/rlp/launcher"
)

// An inquiry is what somebody asks about, and of which run: "" is the next one.
type inquiry struct {
	asked    string
	requests []caps.Request
	run      string
	at       uint64 // a record of the run; 0 is its last
}

// explain prints the decision on each request, every layer's vote, and the
// smallest edit that would change it. A denial is an answer, not a failure: the
// exit status is 0. past is nil for a launch that is not made yet.
func (a *app) explain(c *composition, plan launcher.Plan, p launcher.Policy, q inquiry, past *pastRun) error {
	if past == nil {
		a.unsetNote(c)
	}
	var documents []explanation
	for _, r := range append(slices.Clip(q.requests), alsoAsked(plan.Effective, q.requests, len(c.bundle.Tools) > 0)...) {
		written := r.Name
		r, err := c.canonicalRequest(r)
		if err != nil {
			return inputErr(err)
		}
		domains := append(policy.BuiltinDomains(), c.config.KB.Domains...)
		if err := knownDomain(caps.Grant{Family: r.Family, Scope: r.Name}, domains); err != nil {
			return usagef("%s: %w", q.asked, err)
		}
		e := plan.Effective.Explain(r)
		d := explanation{Explanation: e, Decision: verdict(e.Allow), Layer: refuser(e), Kind: about(r), Leases: leasesOn(plan.Effective, r), Hidden: hiddenFor(plan.Effective, r)}
		d.Edits, d.Verified = smallest(p, r, togetherModes(q.requests, r), c.home.Override(c.bundle.Manifest.Agent.String()))
		d.leased(plan.Effective, past == nil)
		if r.Family == caps.Env {
			d.Variable = hostcalls.VariableRule(r.Name)
		}
		if r.Name != written {
			d.Written, d.Resolved = written, r.Name
		}
		documents = append(documents, d)
	}
	whole := together(q.asked, documents)
	whole.Past = past.document()
	if past == nil {
		whole.Redirected = redirectDocuments(c.paths, documents[0].Request.Family)
		if list := c.paths.Redirected(); len(list) > 0 && !c.relaxed() {
			whole.Refused = list[0].String()
		}
	}
	whole.answered()
	return a.printExplanation(whole)
}

// alsoAsked are the requests without which those of a list are not the whole
// answer: what a host call alone would touch, where nothing of it is held; and
// the host call by which something is asked for, where every one is hidden. A
// bundle's own tools may reach it otherwise.
func alsoAsked(s caps.Set, requests []caps.Request, tools bool) []caps.Request {
	if len(requests) == 0 {
		return nil
	}
	r := requests[0]
	if r.Family == caps.Tool {
		i := slices.IndexFunc(caps.Tools(), func(t caps.ToolInfo) bool { return t.Scope() == r.Name })
		if i < 0 || len(requests) > 1 {
			return nil
		}
		f := caps.Tools()[i].Family
		if f == caps.Tool || s.Any(f) {
			return nil
		}
		return []caps.Request{{Family: f, Name: wholeScope(f)}}
	}
	calls := slices.DeleteFunc(slices.Clone(caps.Tools()), func(t caps.ToolInfo) bool { return t.Family != r.Family })
	if tools || len(calls) == 0 || len(hiddenFor(s, r)) < len(calls) {
		return nil
	}
	return []caps.Request{{Family: caps.Tool, Name: calls[0].Scope()}}
}

func wholeScope(f caps.Family) string {
	if f == caps.FS {
		return "/"
	}
	return "*"
}

// leased makes a denial of what a lease leaves no use of, or no time; now says
// that it is asked about this moment.
func (d *explanation) leased(s caps.Set, now bool) {
	if !d.Allow {
		return
	}
	for _, l := range leasesOf(s, d.Request) {
		if l.MaxUses > 0 && (!now || l.Expires > time.Now().UnixMilli()) {
			continue
		}
		d.Allow, d.Code, d.Decision, d.Layer = false, caps.LeaseExpired, verdict(false), s.LayerName(l.Layer)
		for i := range d.Votes {
			if d.Votes[i].Layer == d.Layer {
				d.Votes[i].Allow, d.Votes[i].Pos = false, l.Pos
			}
		}
		what := fmt.Sprintf("%q", l.Grant.String())
		d.Edits, d.Verified = []edit{{Layer: d.Layer, Do: "remove", What: what, Source: l.Pos, Text: "remove the lease " + what + " from " + l.Pos.String() + ", or give it a later end or more uses"}}, true
		return
	}
}

// answered makes what the run was last told the answer, where it was refused
// what it held: by a limit, a lease, a person, or what could not be reached.
func (d *explanation) answered() {
	if d.Past == nil || len(d.Past.Asked) == 0 || !d.Allow {
		return
	}
	last := d.Past.Asked[len(d.Past.Asked)-1]
	for _, code := range []caps.Code{caps.BudgetExhausted, caps.RateLimited, caps.LeaseExpired, caps.NotConfirmed, caps.Unavailable, caps.ServerChanged} {
		if last.Decision != verdict(false) || last.Reason != code.String() {
			continue
		}
		d.Allow, d.Code, d.Decision, d.Layer, d.Verified = false, code, verdict(false), last.Layer, false
		d.Edits = []edit{{Layer: last.Layer, Do: "nothing", Text: fmt.Sprintf("it was held, and refused at record %d for another reason (%s) than a layer's scopes", last.RunSeq, code)}}
	}
}

// togetherModes are the modes of what was asked about one name at once.
func togetherModes(requests []caps.Request, r caps.Request) caps.ModeSet {
	modes := caps.Modes(r.Mode)
	for _, q := range requests {
		if q.Family == r.Family && r.Family == caps.Net {
			modes |= 1 << q.Mode
		}
	}
	return modes
}

// leasesOn says what bounds a request that is allowed, by time or by how often.
func leasesOn(s caps.Set, r caps.Request) []string {
	list := []string{}
	for _, l := range leasesOf(s, r) {
		text := l.Grant.String()
		if l.Expires != caps.Forever {
			text += " until " + time.UnixMilli(l.Expires).UTC().Format(time.RFC3339)
		}
		if l.MaxUses != caps.Unbounded {
			text += fmt.Sprintf(" at most %d times", l.MaxUses)
		}
		list = append(list, text+" by "+s.LayerName(l.Layer)+" "+l.Pos.String())
	}
	return list
}

// leasesOf are the leases that hold a request.
func leasesOf(s caps.Set, r caps.Request) []caps.Held {
	var list []caps.Held
	for _, l := range s.HeldLeases() {
		held := l.Grant.Family == r.Family && l.Grant.Modes.Has(r.Mode)
		id := s.Check(r).Scope
		if held && s.Enclosing(r.Family, id, func(up int32) bool { return s.Scope(r.Family, up) == l.Grant.Scope }) >= 0 {
			list = append(list, l)
		}
	}
	return list
}

// hiddenFor are the host calls by which r cannot be asked for, whatever is
// granted, each with the line that takes it away.
func hiddenFor(s caps.Set, r caps.Request) []string {
	list := []string{}
	for _, t := range caps.Tools() {
		if t.Family != r.Family || r.Family == caps.Tool {
			continue
		}
		for _, v := range s.Explain(caps.Request{Family: caps.Tool, Name: t.Scope()}).Votes {
			if !v.Allow {
				list = append(list, t.Name+" by "+v.Layer+" "+v.Pos.String())
				break
			}
		}
	}
	return list
}

// together makes one document of what was asked: the first refusal, when there
// is one, is the answer. Requests that are answered alike, as the methods of a
// host mostly are, need no parts.
func together(asked string, documents []explanation) explanation {
	whole, alike := documents[0], true
	if len(documents) > 1 && whole.Request.Family == caps.Tool {
		whole = documents[1] // what is touched says more than by which call
	}
	for _, d := range documents {
		if whole.Allow && !d.Allow {
			whole = d
		}
		first := documents[0]
		alike = alike && d.Code == first.Code && d.Scope == first.Scope && slices.Equal(d.Votes, first.Votes)
	}
	whole.Asked = asked
	if !alike {
		whole.Parts = merged(documents)
	}
	return whole
}

// merged makes one of the parts of one name that are answered alike, as the
// methods of a host mostly are.
func merged(documents []explanation) []explanation {
	var list []explanation
	var modes caps.ModeSet
	for _, d := range documents {
		if n := len(list); n > 0 {
			last := &list[n-1]
			if a, b := last.Request, d.Request; a.Family == b.Family && a.Name == b.Name && last.Code == d.Code && slices.Equal(last.Votes, d.Votes) {
				modes |= 1 << b.Mode
				last.Explanation.Asked = caps.Grant{Family: a.Family, Modes: modes, Scope: a.Name}.String()
				continue
			}
		}
		modes = caps.Modes(d.Request.Mode)
		list = append(list, d)
	}
	return list
}

// An explanation is what explain prints of one request.
type explanation struct {
	caps.Explanation
	Decision string `json:"decision"`
	// Layer is the first that refuses; empty when none does, "base" when the
	// bundle never asked for it.
	Layer string `json:"layer,omitempty"`
	// Kind is what the family is beside its scopes; Leases are what bounds the
	// request by time or by how often.
	Kind   string   `json:"kind"`
	Leases []string `json:"leases"`
	// Hidden are the host calls that some layer takes away.
	Hidden []string `json:"hidden_tools"`
	// Edits are the smallest set of edits that would change the decision;
	// Verified says that a plan with all of them was made, and decides otherwise.
	Edits    []edit `json:"edits"`
	Verified bool   `json:"verified"`
	// Variable is what programs may be given of a variable, beside its grant.
	Variable string `json:"variable,omitempty"`
	// Written is the path that was asked about, and Resolved where it leads, when
	// that is another; Redirected are the paths of the policy that links lead elsewhere.
	Written    string             `json:"written,omitempty"`
	Resolved   string             `json:"resolved,omitempty"`
	Redirected []redirectDocument `json:"redirected,omitempty"`
	// Refused says why a launch is refused whatever is asked for, because of a link.
	Refused string `json:"refused,omitempty"`
	// Past is what the records of a run say, where one was asked about.
	Past *pastDocument `json:"run,omitempty"`
	// Parts are the single requests, where they are answered differently.
	Parts []explanation `json:"parts,omitempty"`
}

// A pastDocument is what the records of a run say of what it held, and of when
// it asked the same.
type pastDocument struct {
	Run   string      `json:"run_id"`
	At    uint64      `json:"at,omitempty"`
	Swaps []swapped   `json:"swaps"`
	Notes []string    `json:"notes"`
	Asked []askedThen `json:"asked"`
}

func (p *pastRun) document() *pastDocument {
	if p == nil {
		return nil
	}
	d := &pastDocument{Run: p.id, At: p.at, Swaps: p.swaps, Notes: orEmpty(p.notes), Asked: p.asked}
	if d.Swaps == nil {
		d.Swaps = []swapped{}
	}
	if d.Asked == nil {
		d.Asked = []askedThen{}
	}
	return d
}

func (a *app) printExplanation(d explanation) error {
	if a.json {
		return a.printJSON(d)
	}
	say := func(format string, args ...any) { fmt.Fprintln(a.stdout, printable(fmt.Sprintf(format, args...))) }
	say("%s %s: %s", d.Decision, d.Asked, d.Code)
	if p := d.Past; p != nil {
		printPast(say, p)
	}
	if d.Resolved != "" {
		say("  %s leads to %s", d.Written, d.Resolved)
	}
	for _, r := range d.Redirected {
		say("  %s: %s, written %s", r.Source, r.Path, r.Written)
	}
	if d.Refused != "" {
		say("  a launch is refused: %s", d.Refused)
	}
	if d.Kind != "" {
		say("  it is %s", d.Kind)
	}
	if d.Variable != "" {
		say("  the agent's programs: %s", d.Variable)
	}
	if d.Scope != "" {
		say("  the deepest scope that holds it: %s", d.Scope)
	}
	for _, v := range d.Votes {
		line := fmt.Sprintf("  %-5s %s", verdict(v.Allow), v.Layer)
		if p := v.Pos.String(); p != "" {
			line += "  " + p
		}
		say("%s", line)
	}
	for _, l := range d.Leases {
		say("  leased: %s", l)
	}
	for _, h := range d.Hidden {
		say("  not by the call %s", h)
	}
	printEdits(say, d)
	for _, part := range d.Parts {
		say("  of these %s %s: %s", part.Decision, part.Explanation.Asked, part.Code)
	}
	return nil
}

func printPast(say func(string, ...any), p *pastDocument) {
	when := "at its end"
	if p.At > 0 {
		when = fmt.Sprintf("at its record %d", p.At)
	}
	say("  in run %s, %s", p.Run, when)
	for _, s := range p.Swaps {
		line := fmt.Sprintf("  since record %d narrowed by %s", s.RunSeq, s.Source)
		if s.Label != "" {
			line += " (" + s.Label + ")"
		}
		say("%s", line)
	}
	for _, q := range p.Asked {
		line := fmt.Sprintf("  record %d: %s %s %s", q.RunSeq, q.Decision, q.Op, q.Reason)
		if q.Layer != "" {
			line += " (" + q.Layer + ")"
		}
		say("%s", line)
	}
	for _, n := range p.Notes {
		say("  note: %s", n)
	}
}

// printEdits prints what would change the decision. Where layers refuse
// together, one edit is not enough.
func printEdits(say func(string, ...any), d explanation) {
	other := "deny"
	if !d.Allow {
		other = "allow"
	}
	switch {
	case len(d.Edits) == 0:
		return
	case len(d.Edits) == 1 && d.Edits[0].Do == "nothing":
		say("  to %s it: %s", other, d.Edits[0].Text)
		return
	case len(d.Edits) == 1:
		say("  to %s it, %s", other, d.Edits[0].Text)
	default:
		say("  to %s it, all of:", other)
		for _, e := range d.Edits {
			say("    %s", e.Text)
		}
	}
	if !d.Verified {
		say("  which is not enough, or could not be tried")
	}
}

func verdict(allow bool) string {
	if allow {
		return "allow"
	}
	return "deny"
}

func refuser(e caps.Explanation) string {
	for _, v := range e.Votes {
		if !v.Allow {
			return v.Layer
		}
	}
	return ""
}

// canonicalRequest resolves the links of a path or a program, as the grants were.
func (c *composition) canonicalRequest(r caps.Request) (caps.Request, error) {
	if r.Family != caps.FS && r.Family != caps.Exec || r.Name == "*" {
		return r, nil
	}
	resolve := jail.Canonical
	if r.Family == caps.Exec {
		resolve = c.canonicalProgram
	}
	to, err := resolve(r.Name)
	if err != nil {
		return r, fmt.Errorf("resolving %s: %w", r.Name, err)
	}
	r.Name = to.Path
	return r, nil
}
