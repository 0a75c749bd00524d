package main

import (
	"fmt"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/jail"
	"runloop.dev/rlp/launcher"
)

// explain prints the decision on each request and every layer's vote. A denial
// is an answer, not a failure: the exit status is 0.
func (a *app) explain(c *composition, plan launcher.Plan, asked string, requests []caps.Request) error {
	a.unsetNote(c)
	var documents []explanation
	for _, r := range requests {
		r, err := canonicalRequest(r)
		if err != nil {
			return inputErr(err)
		}
		e := plan.Effective.Explain(r)
		documents = append(documents, explanation{Explanation: e, Decision: verdict(e.Allow), Layer: refuser(e)})
	}
	return a.printExplanations(together(asked, documents))
}

// together makes one document of requests that are answered alike, as the
// methods of a host mostly are.
func together(asked string, documents []explanation) []explanation {
	for _, d := range documents[1:] {
		first := documents[0]
		if d.Code != first.Code || d.Scope != first.Scope || !slices.Equal(d.Votes, first.Votes) {
			return documents
		}
	}
	documents[0].Asked = asked
	return documents[:1]
}

// An explanation is what explain prints of one request.
type explanation struct {
	caps.Explanation
	Decision string `json:"decision"`
	// Layer is the first that refuses; empty when none does, "base" when the
	// bundle never asked for it.
	Layer string `json:"layer,omitempty"`
}

func (a *app) printExplanations(documents []explanation) error {
	if a.json {
		if len(documents) == 1 {
			return a.printJSON(documents[0])
		}
		return a.printJSON(documents)
	}
	for _, d := range documents {
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

// canonicalRequest resolves the links of a path, as the grants were.
func canonicalRequest(r caps.Request) (caps.Request, error) {
	if r.Family != caps.FS {
		return r, nil
	}
	path, _, err := jail.Canonical(r.Name)
	if err != nil {
		return r, fmt.Errorf("resolving %s: %w", r.Name, err)
	}
	r.Name = path
	return r, nil
}
