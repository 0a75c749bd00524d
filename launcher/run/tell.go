package run

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/launcher/places"
)

func newReport(s *Spec, p Plan) *Report {
	return &Report{
		RunID: s.RunID, TraceID: s.TraceID, Tenant: s.Tenant, Agent: s.Agent, Version: s.Version,
		BundleDigest: s.BundleDigest, Outcome: Refused,
		Base: orEmpty(p.Base.Strings()), Effective: orEmpty(p.Effective.Strings()),
		Except:  GrantStrings(p.Effective.Except()),
		Changes: Flatten(p.Changes), Limits: p.Limits.Map(),
		Generation: 1, Usage: Usage{Families: map[string]FamilyUsage{}},
		Lane: laneOf(s, p), Tools: Attachments(p.Effective, s.Components.Tools),
		changes: p.Changes,
	}
}

// laneOf is the lane of a run's programs, or of the agent itself where it has
// none.
func laneOf(s *Spec, p Plan) *Lane {
	if s.Lane != nil && holds(p.Effective, caps.Exec) {
		return s.Lane
	}
	return wasm()
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func (r *Report) refuse(o Outcome, status int, why places.Text) {
	r.Outcome, r.ExitCode, r.Message, r.why = o, status, cutMessage(why.String()), why
}

// ofModule is what is wrong with a module, whoever sent it.
func ofModule(err error) places.Text {
	if errors.Is(err, guest.ErrModule) {
		return places.Textf("%s", err.Error())
	}
	return places.Textf("%v", err)
}

// cutMessage bounds a message, which may quote what a bundle made up.
func cutMessage(message string) string {
	const most = 4096
	if len(message) > most {
		message = message[:most] + "..."
	}
	return message
}

// Unrecorded makes the run one whose record may not be complete, however it ended.
func (r *Report) Unrecorded(err error) {
	r.refuse(AuditFailed, StatusAudit, places.Textf("%v", err))
}

func digestOf(s caps.Set) string {
	d := s.Digest()
	return hex.EncodeToString(d[:])
}

func (r *run) event(name string, fields map[string]any) {
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
func (r *run) isTold() bool {
	r.telling.Lock()
	defer r.telling.Unlock()
	return r.told
}

// warnOnce warns of what the guest may cause as often as it likes.
func (r *run) warnOnce(message string) {
	const most = 100
	r.warning(places.Host(message), func(before []string) bool {
		return len(before) < most && !slices.Contains(before, message)
	})
}

// warn warns of what [places.Textf] says.
func (r *run) warn(format string, args ...any) {
	r.warning(places.Textf(format, args...), func([]string) bool { return true })
}

// warning adds a warning to the report, and to the log, if want says so of what is there.
func (r *run) warning(text places.Text, want func(before []string) bool) {
	w := text.String()
	r.telling.Lock()
	wanted := !r.told && want(r.report.Warnings)
	if wanted {
		r.report.Warnings, r.report.warnings = append(r.report.Warnings, w), append(r.report.warnings, text)
	}
	r.telling.Unlock()
	if wanted {
		r.spec.Log.LogAttrs(context.Background(), slog.LevelWarn, w, r.who()...)
	}
}

// logSets logs what was asked for and what is left, and each entry of a layer
// that is not in the base.
func (r *run) logSets() {
	ctx := context.Background()
	r.spec.Log.LogAttrs(ctx, slog.LevelInfo, "run_start", append(r.who(), slog.Any("limits", r.report.Limits))...)
	r.spec.Log.LogAttrs(ctx, slog.LevelInfo, "caps_base", append(r.who(), slog.Any("capabilities", r.report.Base))...)
	r.spec.Log.LogAttrs(ctx, slog.LevelInfo, "caps_effective",
		append(r.who(), slog.Any("capabilities", r.report.Effective))...)
	r.logTools()
	for _, c := range r.plan.Ignored() {
		w := places.Textf("%s: %s: %s is not in the base and is ignored (%s)", places.Layer(c.Layer), c.Grant.Family.String(), c.Grant, c.Source)
		if c.Grant.Family == caps.FS || c.Grant.Family == caps.Exec { // a place that the bundle does not ask for
			w = places.Host(w.String())
		}
		r.warn("%s", w)
	}
	for _, e := range r.plan.NoTools {
		w := places.Textf("%s: there is no tool %s, so denying it takes nothing away (%s)", e.Layer, e.Scope, e.Pos)
		r.report.Notices = append(r.report.Notices, w.String())
		r.warn("%s", w)
	}
}

// uncounted warns of paths that programs of the run are not given, though the
// run holds them: a lease bounds their uses.
func (r *run) uncounted() {
	if !holds(r.plan.Effective, caps.Exec) {
		return
	}
	for _, l := range r.plan.Effective.Leases() {
		if l.Grant.Family == caps.FS && l.MaxUses != caps.Unbounded {
			r.warn("programs are not given %s: a lease bounds its uses (%s)", l.Grant, l.Pos)
		}
	}
}

func (r *run) logEnd() {
	rep := r.report
	r.spec.Log.LogAttrs(context.Background(), slog.LevelInfo, "run_end", append(
		r.who(), slog.String("outcome", string(rep.Outcome)), slog.Int("exit_code", rep.ExitCode),
		slog.Bool("timed_out", rep.Outcome == Timeout),
		slog.Int64("denied", rep.Usage.Denied), slog.Bool("refused_by_policy", rep.ExitCode == StatusPolicy &&
			rep.Outcome == Refused),
	)...)
}

func (r *run) agentLog(level, message string) {
	var l slog.Level
	switch level {
	case "debug":
		l = slog.LevelDebug
	case "warn":
		l = slog.LevelWarn
	case "error":
		l = slog.LevelError
	}
	r.spec.Log.LogAttrs(context.Background(), l, "agent_log", append(r.who(), slog.String("message", message))...)
}

// failed logs why a call failed in the host: no report or record says it.
func (r *run) failed(op, why string) {
	r.spec.Log.LogAttrs(context.Background(), slog.LevelError, "call_failed", append(r.who(), slog.String("op", op),
		slog.String("why", why))...)
}

func (r *run) who() []slog.Attr {
	return []slog.Attr{
		slog.String("run_id", r.spec.RunID), slog.String("tenant", r.spec.Tenant), slog.String("agent", r.spec.Agent),
	}
}

func (r *run) usage() {
	u := &r.report.Usage
	u.StdoutBytes, u.StdoutTruncated = r.out.total, r.out.truncated
	u.StderrBytes, u.StderrTruncated = r.err.total, r.err.truncated
	r.report.Stdout = r.scrubText(r.out.kept.String(), "stdout") // with what was learned since
	r.report.Stderr = r.scrubText(r.err.kept.String(), "stderr")
	for f := range caps.NumFamilies {
		c := r.gate.Counts(f)
		if c.Allowed+c.Denied == 0 {
			continue
		}
		u.Families[f.String()] = FamilyUsage{Allowed: c.Allowed, Denied: c.Denied}
		u.Allowed += c.Allowed
		u.Denied += c.Denied
	}
	u.Hostcalls = r.gate.Calls()
	r.report.Generation = r.gate.Generation()
	r.telling.Lock()
	defer r.telling.Unlock()
	u.SecretsReplaced = r.replacements
	if r.spec.Inputs != nil {
		u.Turns = r.turn
	}
}

func (u Usage) summary() map[string]int64 {
	m := map[string]int64{
		"wall_ms": u.WallMS, "fuel": u.Fuel, "memory_bytes": u.MemoryBytes, "hostcalls": u.Hostcalls, "allowed": u.Allowed,
		"denied": u.Denied, "stdout_bytes": u.StdoutBytes, "stderr_bytes": u.StderrBytes,
	}
	if u.SecretsReplaced > 0 {
		m["secrets_replaced"] = u.SecretsReplaced
	}
	return m
}
