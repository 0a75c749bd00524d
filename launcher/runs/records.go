package runs

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"unicode/utf8"

	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
)

// Records are the records that f asks for, as a person is told them: denials are those
// of what agents asked for, unless f names another capability of the log.
func Records(ctx context.Context, s *kb.Store, f kb.Filter) iter.Seq2[audit.Record, error] {
	return s.Audit(ctx, f.OfAgents())
}

// RecordLine is a record in one line: whole, or in so many characters where width
// is not 0. A denial is red where that is asked for.
func RecordLine(r *audit.Record, width int, red bool) string {
	number := "-" // it is not in the log yet
	if r.Seq > 0 {
		number = strconv.FormatUint(r.Seq, 10)
	}
	head := fmt.Sprintf("%6s %s %s %-12s", number, r.Time.Local().Format("15:04:05.000"),
		Short(printable.Line(r.Head.RunID)), printable.Line(r.Head.Agent))
	d := r.Decision
	switch {
	case d == nil && width > 0:
		return End(head+" "+printable.Line(eventLine(r.Event)), width)
	case d == nil:
		return head + " " + printable.Line(eventLine(r.Event))
	}
	word := "allow"
	switch {
	case d.AtStart(), d.OfLaunch():
		word = "note "
	case d.Deny && red:
		word = "\x1b[31mdeny \x1b[0m"
	case d.Deny:
		word = "deny "
	}
	about := decisionLine(d)
	if width > 0 {
		about = shortDecision(d, width-utf8.RuneCountInString(head)-len(" allow "))
	}
	return head + " " + word + " " + about
}

// decisionLine is all of a decision.
func decisionLine(d *audit.DecisionRecord) string {
	line := printable.Line(fmt.Sprintf("%-10s %-22s %s", d.Cap, d.Op, d.Target))
	if d.AtStart() {
		return line + " a virtual clock, for its language's start"
	}
	if d.Deny {
		line += "  " + printable.Line(d.Reason)
		if d.Layer != "" {
			line += " (" + printable.Line(d.Layer) + ")"
		}
		if d.Label != "" {
			line += "  because of " + printable.Line(d.Label)
		}
	}
	return line
}

// shortDecision is what was asked for, and why not, in so many characters.
func shortDecision(d *audit.DecisionRecord, width int) string {
	about, tail := printable.Line(d.Target), ""
	if about == "" {
		about = printable.Line(d.Op)
	}
	if d.Deny && !d.AtStart() {
		tail = "  " + printable.Line(d.Reason)
	}
	line := fmt.Sprintf("%-10s ", printable.Line(d.Cap))
	return End(line+Middle(about, max(8, width-len(line)-len(tail)))+tail, width)
}

func eventLine(e *audit.Event) string {
	switch e.Kind {
	case audit.KindRunStart:
		return fmt.Sprintf("start base=%d effective=%d layers=%d", len(e.Base), len(e.Effective), len(e.Layers))
	case audit.KindCallDone:
		line := fmt.Sprintf("done  %s %s", e.Verb, e.Status)
		if e.ErrorSummary != "" {
			line += " " + e.ErrorSummary
		}
		return line
	case audit.KindCapsSwap:
		line := "swap  " + e.Source
		if e.Label != "" {
			line += "  because of " + e.Label
		}
		return line
	}
	line := fmt.Sprintf("end   %s exit=%d", e.Outcome, e.ExitCode)
	if e.Message != "" {
		line += " " + e.Message
	}
	return line
}
