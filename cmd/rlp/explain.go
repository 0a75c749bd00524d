package main

import (
	"context"
	"fmt"
	"time"

	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/auditlog"
	"runloop.dev/rlp/launcher/compose"
)

// explain prints the decision on each request, every layer's vote, and the
// smallest edit that would change it. A denial is an answer, not a failure: the
// exit status is 0.
func explainDecision(ctx context.Context, a *app, path string, f compose.Flags, q ask.Query) error {
	q.Now = time.Now()
	if path == "" {
		e, err := auditlog.ExplainRecorded(ctx, a.reader(), q)
		if err != nil {
			return err
		}
		return printExplanation(a, e)
	}
	c, _, err := a.reader().Plan(path, f)
	if err != nil {
		return err
	}
	if q.Run == "" {
		unsetNote(a, c)
	}
	subject := c.Subject()
	subject.Floor = a.reader().UntrustedFloor(c)
	e, err := auditlog.Explain(ctx, a.reader(), subject, q)
	if err != nil {
		return err
	}
	return printExplanation(a, e)
}

func printExplanation(a *app, d *ask.Explanation) error {
	if a.json {
		return a.printJSON(d)
	}
	say := func(format string, args ...any) {
		fmt.Fprintln(a.stdout, fitted(a.stdout, printable(fmt.Sprintf(format, args...))))
	}
	say("%s %s: %s", d.Decision, d.Asked, d.Code)
	if d.Untrusted != "" {
		say("  but deny once the run has taken in untrusted content: untrusted_context (%s)", d.Untrusted)
		say("    security.caps.trusted_hosts names hosts whose answers are trusted; docs/untrusted-content.md")
	}
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
		say("  %s", d.Kind)
	}
	if d.Variable != "" {
		say("  the agent's programs: %s", d.Variable)
	}
	if rule := d.Rule(); rule != "" {
		say("  the most specific matching rule: %s", rule)
	}
	for _, v := range d.Votes {
		line := fmt.Sprintf("  %-5s %s", verdict(v.Allow), v.Layer)
		if p := v.Pos.String(); p != "" {
			line += "  " + p
		}
		say("%s", line)
	}
	for _, i := range d.Ignored {
		say("  ignored: %s names it, and adds nothing: such a file only takes away", i)
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

func printPast(say func(string, ...any), p *ask.Past) {
	when := "at its end"
	if p.At > 0 {
		when = fmt.Sprintf("at record %d", p.At)
	}
	say("  in run %s, %s", p.Run, when)
	for _, s := range p.Swaps {
		line := fmt.Sprintf("  since record %d narrowed by %s", s.Seq, s.Source)
		if s.Label != "" {
			line += " (" + s.Label + ")"
		}
		say("%s", line)
		if setting, how := ask.Trust(s.Label); setting != "" {
			say("    to trust it, write %s: %s", setting, how)
		}
	}
	for _, q := range p.Asked {
		line := fmt.Sprintf("  record %d: %s %s %s", q.Seq, q.Decision, q.Op, q.Reason)
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
func printEdits(say func(string, ...any), d *ask.Explanation) {
	other := "deny"
	if !d.Allow {
		other = "allow"
		if d.OutsideGrants() {
			say("  nothing to do unless you expected it: no grant of the bundle holds this, and an input may have named it")
		}
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
