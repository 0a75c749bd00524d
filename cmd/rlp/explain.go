//go:build !slim

package main

import (
	"fmt"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/jail"
	"runloop.dev/rlp/launcher"
)

// explain prints the decision on each request and every layer's vote. A denial
// is an answer, not a failure: the exit status is 0.
func (a *app) explain(c *composition, plan launcher.Plan, asked string, requests []caps.Request) error {
	a.unsetNote(c)
	var documents []explanation
	for _, r := range requests {
		r, err := c.canonicalRequest(r)
		if err != nil {
			return inputErr(err)
		}
		domains := append(policy.BuiltinDomains(), c.config.KB.Domains...)
		if err := knownDomain(caps.Grant{Family: r.Family, Scope: r.Name}, domains); err != nil {
			return usagef("%s: %w", asked, err)
		}
		e := plan.Effective.Explain(r)
		documents = append(documents, explanation{Explanation: e, Decision: verdict(e.Allow), Layer: refuser(e)})
	}
	return a.printExplanation(together(asked, documents))
}

// together makes one document of what was asked: the first refusal, when there
// is one, is the answer. Requests that are answered alike, as the methods of a
// host mostly are, need no parts.
func together(asked string, documents []explanation) explanation {
	whole, alike := documents[0], true
	for _, d := range documents[1:] {
		if whole.Allow && !d.Allow {
			whole = d
		}
		first := documents[0]
		alike = alike && d.Code == first.Code && d.Scope == first.Scope && slices.Equal(d.Votes, first.Votes)
	}
	whole.Asked = asked
	if !alike {
		whole.Parts = documents
	}
	return whole
}

// An explanation is what explain prints of one request.
type explanation struct {
	caps.Explanation
	Decision string `json:"decision"`
	// Layer is the first that refuses; empty when none does, "base" when the
	// bundle never asked for it.
	Layer string `json:"layer,omitempty"`
	// Parts are the single requests, where they are answered differently.
	Parts []explanation `json:"parts,omitempty"`
}

func (a *app) printExplanation(d explanation) error {
	if a.json {
		return a.printJSON(d)
	}
	fmt.Fprintf(a.stdout, "%s %s: %s\n", d.Decision, d.Asked, d.Code)
	if d.Scope != "" {
		fmt.Fprintf(a.stdout, "  the deepest scope that holds it: %s\n", d.Scope)
	}
	for _, v := range d.Votes {
		line := fmt.Sprintf("  %-5s %s", verdict(v.Allow), v.Layer)
		if p := v.Pos.String(); p != "" {
			line += "  " + p
		}
		fmt.Fprintln(a.stdout, line)
	}
	for _, part := range d.Parts {
		fmt.Fprintf(a.stdout, "  of these %s %s: %s\n", part.Decision, part.Asked, part.Code)
	}
	return nil
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
	path, _, err := resolve(r.Name)
	if err != nil {
		return r, fmt.Errorf("resolving %s: %w", r.Name, err)
	}
	r.Name = path
	return r, nil
}
