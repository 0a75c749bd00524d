package runs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/run"
)

// Bounds of a summary: a page of a result, and five lines of denials, the last of
// which says that there are more.
const (
	mostResult  = 4 << 10
	mostDenials = 4
)

// Summary tells a person in a few lines how a run of the agent ended, what
// it returned where nothing was printed, and what it was denied, with the command
// that explains it; nothing says why it held nothing, if so.
func Summary(r *run.Report, denials []Denial, nothing string, a Asked, width int) []string {
	lines := []string{fmt.Sprintf("%s in %s, %d allowed, %d denied (run %s)", r.Outcome, Took(r.Usage.WallMS),
		r.Usage.Allowed, r.Usage.Denied, Short(r.RunID))}
	if len(r.Result) > 0 && r.Usage.StdoutBytes == 0 {
		// A line end of JSON is between its words; on a terminal it would move the outcome away.
		lines = append(lines, "result: "+End(strings.ReplaceAll(string(r.Result), "\n", " "), mostResult))
	}
	for i := range denials[:min(len(denials), mostDenials)] {
		lines = append(lines, "denied "+denials[i].Text(width-len("denied ")))
	}
	if more := len(denials) - mostDenials; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more: rlp runs show %s%s", more, Short(r.RunID), a.Flags))
	}
	if len(denials) > 0 {
		if nothing != "" {
			lines = append(lines, nothing)
		}
		if said := cameIn(denials); said != "" {
			lines = append(lines, "untrusted: "+said)
		}
		lines = append(lines, "why: "+a.Explain(r.RunID, &denials[0]))
	}
	return lines
}

// Brief is what a run was denied, in two lines at most: the first of it, and the command
// that shows the rest or explains this one.
func Brief(r *run.Report, denials []Denial, a Asked, width int) []string {
	switch len(denials) {
	case 0:
		return nil
	case 1:
		return []string{"denied " + denials[0].Text(width-len("denied ")), "why: " + a.Explain(r.RunID, &denials[0])}
	}
	return []string{
		"denied " + denials[0].Text(width-len("denied ")),
		fmt.Sprintf("and %d more: rlp runs show %s%s", len(denials)-1, Short(r.RunID), a.Flags),
	}
}

// cameIn says which untrusted content a run was denied something for, and what would
// trust it; "": none.
func cameIn(denials []Denial) string {
	i := slices.IndexFunc(denials, func(d Denial) bool { return d.Label != "" })
	if i < 0 {
		return ""
	}
	said := printable.Line(denials[i].Label) + " came in and narrowed the run; "
	setting, how := ask.Trust(denials[i].Label)
	if setting != "" {
		said += "to trust it, write " + setting + ": "
	}
	return said + how + " (docs/untrusted-content.md)"
}

// NothingHeld says why a run held nothing, and what to do: a bare module asks for what
// --allow names, and unasked says that this one was launched without.
func (a Asked) NothingHeld(unasked bool) string {
	if unasked {
		return "it was launched without --allow, so it holds nothing: rlp launch " + shell(a.Bundle) +
			" --allow fs:read:PATH" + a.Flags
	}
	return "no layer left it anything: rlp caps diff " + shell(a.Bundle) + a.Flags
}

// Took is how long a run took.
func Took(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d >= time.Minute {
		d = d.Round(time.Second)
	}
	return d.String()
}

// Show is a run and what it was denied, a line each, with the command that explains
// the first of it.
func Show(l *Line, denials []Denial, empty bool, a Asked, width int) []string {
	lines := []string{
		"run      " + printable.Line(l.RunID), "agent    " + printable.Line(l.Agent),
		fmt.Sprintf("outcome  %s (exit %d)", printable.Line(l.Outcome), l.ExitCode),
		fmt.Sprintf("began    %s, took %s", l.Began.Local().Format(time.RFC3339), Took(l.WallMS)),
	}
	if l.Message != "" {
		lines = append(lines, "message  "+printable.Line(l.Message))
	}
	if l.Ended() {
		lines = append(lines, fmt.Sprintf("calls    %d allowed, %d denied", l.Allowed, l.Denied))
	}
	if empty {
		lines = append(lines, "held     nothing: rlp caps diff "+shell(a.Bundle)+a.Flags+
			"; a module without a bundle holds what --allow names")
		if a.Bundle == Unknown {
			lines = append(lines, "         BUNDLE is the folder or the file that was launched, which the log does not say")
		}
	}
	for i := range denials {
		lines = append(lines, "denied   "+denials[i].Text(width-len("denied   ")))
	}
	if len(denials) > 0 {
		if said := cameIn(denials); said != "" {
			lines = append(lines, "content  "+said)
		}
		lines = append(lines, "why      "+a.Explain(l.RunID, &denials[0]))
	}
	return lines
}

// Unknown stands for what was launched where nobody knows where that lies.
const Unknown = "BUNDLE"
