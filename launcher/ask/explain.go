package ask

import (
	"fmt"
	"slices"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/effect/environ"
	"runloop.dev/rlp/launcher/places"
	"runloop.dev/rlp/launcher/run"
)

// A Query is what somebody asks about: a request in any form that [Query.Text] has
// in policies, records and command lines.
type Query struct {
	Text          string    // "": what the record At of the run was about
	Write, Remove bool      // of a path: to write it, or to remove it
	Method        string    // of a URL; "": each
	Run           string    // a recorded run; "": the next launch
	At            uint64    // the record up to which it is told, by its number in the log; 0: the run's last
	Now           time.Time // leases that are over by then hold nothing

	recorded bool // Text is what the record At of the run was about
}

// Explain says how a launch of s that were made now would decide q, and why.
func Explain(s *Subject, q Query) (*Explanation, error) {
	requests, err := s.requests(q)
	if err != nil {
		return nil, err
	}
	e, err := s.explain(s.Policy, requests, q)
	if err != nil {
		return nil, err
	}
	if s.names == nil {
		e.Redirected = redirects(s.Paths, requests[0].Family)
	}
	if s.Relaxed {
		return e, nil
	}
	left, err := plan(s.Policy)
	if err != nil {
		return nil, err
	}
	switch {
	case s.names == nil:
		e.Refused = s.Paths.Refusal(left)
	case left.Effective.Any(caps.FS):
		e.Untold = untoldPaths
	}
	return e, nil
}

// untoldPaths is said to who does not operate, whatever there is: another answer for
// another path would tell of the host.
const untoldPaths = "a granted path that is not there, or that leads through a link, refuses every launch; " +
	"whether one does is told to who operates"

// explain is the decision of p on each request, every layer's vote, and the
// smallest edit that would change it.
func (s *Subject) explain(p run.Policy, requests []caps.Request, q Query) (*Explanation, error) {
	whole, err := plan(p)
	if err != nil {
		return nil, err
	}
	told, err := plan(s.told(p))
	if err != nil {
		return nil, err
	}
	var parts []Explanation
	for _, r := range append(slices.Clip(requests), alsoAsked(told.Effective, requests, len(s.Bundle.Tools) > 0)...) {
		asked := r
		r, err := s.canonical(r)
		if err != nil {
			return nil, err
		}
		if err := policy.KnownDomain(caps.Grant{Family: r.Family, Scope: r.Name}, s.Domains); err != nil {
			return nil, usagef("%s: %w", q.Text, err)
		}
		shown := r
		if s.names != nil { // whoever is not told where it leads is told what they named
			shown = asked
			if shown.Name = s.filled(places.Of()).Path(asked.Name); q.recorded { // or what a record names
				shown.Name = s.names.Path(asked.Name)
			}
		}
		d := decision{s, told.Effective, s.told(p), r, shown, togetherModes(requests, r)}.explain(q)
		if host := whole.Effective.Check(r); d.Allow && !host.Allow {
			d.byHost(host)
		}
		if s.names == nil && d.Layer == "base" {
			d.Ignored = ignored(whole, r)
		}
		if s.names == nil && shown.Name != asked.Name {
			d.Written, d.Resolved = asked.Name, shown.Name
		}
		parts = append(parts, d)
	}
	if q.recorded {
		q.Text = s.names.Capability(q.Text)
	}
	e := together(q.Text, parts)
	return &e, nil
}

// A decision is one request as a policy decides it.
type decision struct {
	of      *Subject
	held    caps.Set
	policy  run.Policy
	request caps.Request
	shown   caps.Request // as it may be told
	modes   caps.ModeSet // those that were asked about together
}

func (x decision) explain(q Query) Explanation {
	e := x.held.Explain(x.request)
	e.Asked, e.Scope = x.shown.String(), x.of.names.Path(e.Scope)
	d := Explanation{
		Explanation: e, Decision: verdict(e.Allow), Layer: refuser(e), Kind: about(x.request),
		Leases: x.of.leasesOn(x.held, x.request), Hidden: hiddenFor(x.held, x.request),
	}
	d.Edits, d.Verified = x.edits()
	d.leased(x.of, x.held, q)
	if floor := x.of.Floor; d.Allow && q.Run == "" && floor != nil {
		if marked, _, err := x.held.Narrow(floor); err == nil && !marked.Check(x.request).Allow {
			d.Untrusted = floor.Name
		}
	}
	if x.request.Family == caps.Env {
		d.Variable = environ.Rule(x.request.Name)
	}
	d.Request = x.shown
	return d
}

// byHost makes d a denial of what the host keeps for itself.
func (d *Explanation) byHost(of caps.Decision) {
	d.Allow, d.Code, d.Decision, d.Layer = false, of.Code, verdict(false), caps.HostLayer
	d.Edits, d.Verified = []Edit{}, true
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

// leased makes a denial of what a lease leaves no use of, or no time; a run
// that is over used what it held, if anything.
func (d *Explanation) leased(of *Subject, s caps.Set, q Query) {
	if !d.Allow {
		return
	}
	for _, l := range leasesOf(s, d.Request) {
		if l.MaxUses > 0 && (q.Run != "" || l.Expires > q.Now.UnixMilli()) {
			continue
		}
		d.Allow, d.Code, d.Decision, d.Layer = false, caps.LeaseExpired, verdict(false), s.LayerName(l.Layer)
		for i := range d.Votes {
			if d.Votes[i].Layer == d.Layer {
				d.Votes[i].Allow, d.Votes[i].Pos = false, l.Pos
			}
		}
		what := fmt.Sprintf("%q", of.names.Capability(l.Grant.String()))
		d.Edits, d.Verified = []Edit{{Layer: d.Layer, Do: "remove", What: what, Source: l.Pos, Text: "remove the lease " +
			what + " from " + l.Pos.String() + ", or give it a later end or more uses"}}, true
		return
	}
}

// answered makes what the run was last told the answer, where it was refused
// what it held: by a limit, a lease, a person, or what could not be reached.
func (d *Explanation) answered() {
	if d.Past == nil || len(d.Past.Asked) == 0 || !d.Allow {
		return
	}
	last := d.Past.Asked[len(d.Past.Asked)-1]
	for _, code := range []caps.Code{
		caps.BudgetExhausted, caps.RateLimited, caps.LeaseExpired, caps.NotConfirmed,
		caps.Unavailable, caps.ServerChanged,
	} {
		if last.Decision != verdict(false) || last.Reason != code.String() {
			continue
		}
		d.Allow, d.Code, d.Decision, d.Layer, d.Verified = false, code, verdict(false), last.Layer, false
		d.Edits = []Edit{{
			Layer: last.Layer, Do: "nothing",
			Text: fmt.Sprintf("it was held, and refused at record %d for another reason (%s) than a layer's scopes", last.Seq,
				code),
		}}
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
func (s *Subject) leasesOn(held caps.Set, r caps.Request) []string {
	list := []string{}
	for _, l := range leasesOf(held, r) {
		list = append(list, s.lease(l)+" by "+held.LayerName(l.Layer)+" "+l.Pos.String())
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
func together(asked string, documents []Explanation) Explanation {
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
func merged(documents []Explanation) []Explanation {
	var list []Explanation
	var modes caps.ModeSet
	for _, d := range documents {
		if n := len(list); n > 0 {
			last := &list[n-1]
			if a, b := last.Request, d.Request; a.Family == b.Family && a.Name == b.Name && last.Code == d.Code &&
				slices.Equal(last.Votes, d.Votes) {
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

// An Explanation is how one request is decided, and why.
type Explanation struct {
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
	Edits    []Edit `json:"edits"`
	Verified bool   `json:"verified"`
	// Ignored are entries of layers that name the request, which the base does not hold.
	Ignored []string `json:"ignored,omitempty"`
	// Untrusted is the floor that denies the request once the run has taken in
	// untrusted content, where nothing else does.
	Untrusted string `json:"after_untrusted,omitempty"`
	// Variable is what programs may be given of a variable, beside its grant.
	Variable string `json:"variable,omitempty"`
	// Written is the path that was asked about, and Resolved where it leads, when
	// that is another; Redirected are the paths of the policy that links lead elsewhere.
	Written    string     `json:"written,omitempty"`
	Resolved   string     `json:"resolved,omitempty"`
	Redirected []Redirect `json:"redirected,omitempty"`
	// Refused says why a launch is refused whatever is asked for: for a granted path
	// that is not there or leads through a link. Untold says that it is not told.
	Refused string `json:"refused,omitempty"`
	Untold  string `json:"untold,omitempty"`
	// Past is what the records of a run say, where one was asked about.
	Past *Past `json:"run,omitempty"`
	// Parts are the single requests, where they are answered differently.
	Parts []Explanation `json:"parts,omitempty"`
}

// Rule is the most specific rule that matches the request; "" where no grant of the
// agent's own policy holds it, for then what matches decided nothing.
func (d *Explanation) Rule() string {
	if slices.ContainsFunc(d.Votes, func(v caps.Vote) bool { return v.Layer == "base" && !v.Allow }) {
		return ""
	}
	return d.Scope
}

// OutsideGrants reports whether the bundle itself has no grant for the request, and
// no layer took one: it holds others of the kind, so that an input may have named
// what was asked for.
func (d *Explanation) OutsideGrants() bool {
	switch d.Code {
	case caps.PathNotPermitted, caps.HostNotPermitted:
		return !d.Allow && d.Layer == "base"
	}
	return false
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
