package run

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher/places"
)

// A reporter says what becomes of a run: in the log, to who listens for events, and
// as warnings of the report. A guest that was left behind still tells of things,
// until the report is given out.
type reporter struct {
	spec    *Spec
	report  *Report
	telling sync.Mutex
	told    bool       // under telling: the report is given out
	saying  sync.Mutex // held while an event is told
}

func (r *reporter) event(name string, fields map[string]any) {
	if r.spec.Event == nil {
		return
	}
	if fields == nil {
		fields = map[string]any{}
	}
	fields["run_id"] = r.spec.RunID
	r.saying.Lock() // what is told is not told across each other
	defer r.saying.Unlock()
	if !r.isTold() {
		r.spec.Event(name, fields)
	}
}

// isTold reports whether the report is given out, and nothing more is told.
func (r *reporter) isTold() bool {
	r.telling.Lock()
	defer r.telling.Unlock()
	return r.told
}

// warnOnce warns of what the guest may cause as often as it likes.
func (r *reporter) warnOnce(message string) {
	const most = 100
	r.warning(places.Host(message), func(before []string) bool {
		return len(before) < most && !slices.Contains(before, message)
	})
}

// warn warns of what [places.Textf] says.
func (r *reporter) warn(format string, args ...any) {
	r.warning(places.Textf(format, args...), func([]string) bool { return true })
}

// notice has the operator told at the end, where no warning is shown, too.
func (r *reporter) notice(text string) {
	r.telling.Lock()
	defer r.telling.Unlock()
	if !r.told {
		r.report.Notices = append(r.report.Notices, text)
	}
}

// warning adds a warning to the report, and to the log, if want says so of what is there.
func (r *reporter) warning(text places.Text, want func(before []string) bool) {
	w := text.String()
	r.telling.Lock()
	wanted := !r.told && want(r.report.Warnings)
	if wanted {
		r.report.Warnings, r.report.warnings = append(r.report.Warnings, w), append(r.report.warnings, text)
	}
	r.telling.Unlock()
	if wanted {
		r.note(slog.LevelWarn, w)
	}
}

// logPlan logs what was asked for and what is left, each entry of a layer that is
// not in the base, and by whom the floor is, where it is not the built-in one or
// should not have been.
func (r *reporter) logPlan(p Plan) {
	r.note(slog.LevelInfo, "run_start", slog.Any("limits", r.report.Limits))
	r.note(slog.LevelInfo, "caps_base", slog.Any("capabilities", r.report.Base))
	r.note(slog.LevelInfo, "caps_effective", slog.Any("capabilities", r.report.Effective))
	for _, t := range r.report.Tools {
		if !t.Attached {
			r.note(slog.LevelWarn, "tool_not_attached", slog.String("tool", t.ID), slog.String("reason", t.Reason),
				slog.String("capability", t.Capability), slog.String("layer", t.Layer))
		}
	}
	for _, c := range p.Ignored() {
		w := places.Textf("%s: %s: %s is not in the base and is ignored (%s)", places.Layer(c.Layer), c.Grant.Family.String(), c.Grant, c.Source)
		if c.Grant.Family == caps.FS || c.Grant.Family == caps.Exec { // a place that the bundle does not ask for
			w = places.Host(w.String())
		}
		r.warn("%s", w)
	}
	for _, e := range p.NoTools {
		w := places.Textf("%s: there is no tool %s, so denying it takes nothing away (%s)", e.Layer, e.Scope, e.Pos)
		r.report.Notices = append(r.report.Notices, w.String())
		r.warn("%s", w)
	}
	if n := r.spec.Taint.Notice; n != "" {
		r.note(slog.LevelWarn, "untrusted_floor", slog.String("message", n))
	}
}

// uncounted warns of paths that programs of the run are not given, though the
// run holds them: a lease bounds their uses.
func (r *reporter) uncounted(p Plan) {
	if !holds(p.Effective, caps.Exec) {
		return
	}
	for _, l := range p.Effective.Leases() {
		if l.Grant.Family == caps.FS && l.MaxUses != caps.Unbounded {
			r.warn("programs are not given %s: a lease bounds its uses (%s)", l.Grant, l.Pos)
		}
	}
}

func (r *reporter) logEnd() {
	rep := r.report
	r.note(slog.LevelInfo, "run_end", slog.String("outcome", string(rep.Outcome)), slog.Int("exit_code", rep.ExitCode),
		slog.Bool("timed_out", rep.Outcome == Timeout), slog.Int64("denied", rep.Usage.Denied),
		slog.Bool("refused_by_policy", rep.ExitCode == StatusPolicy && rep.Outcome == Refused))
}

func (r *reporter) agentLog(level, message string) {
	var l slog.Level
	switch level {
	case "debug":
		l = slog.LevelDebug
	case "warn":
		l = slog.LevelWarn
	case "error":
		l = slog.LevelError
	}
	r.note(l, "agent_log", slog.String("message", message))
}

// failed logs why a call failed in the host: no report or record says it.
func (r *reporter) failed(op, why string) {
	r.note(slog.LevelError, "call_failed", slog.String("op", op), slog.String("why", why))
}

func (r *reporter) note(level slog.Level, message string, attrs ...slog.Attr) {
	who := []slog.Attr{
		slog.String("run_id", r.spec.RunID), slog.String("tenant", r.spec.Tenant), slog.String("agent", r.spec.Agent),
	}
	r.spec.Log.LogAttrs(context.Background(), level, message, append(who, attrs...)...)
}
