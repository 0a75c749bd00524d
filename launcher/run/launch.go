package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/places"
)

// run is one launch under way.
type run struct {
	reporter
	plan    Plan
	values  redactor
	journal Journal
	gate    *gate.Gate
	host    *hostcalls.Host
	calls   *Calls         // of a body; nil: there is none
	shared  *budget.Budget // what calls and connections of a body count in; nil: there is none
	module  *guest.Module  // that runs
	scarce  bool           // the process had less memory for it than it might have
	out     capture
	err     capture

	input   []byte        // of the first turn
	reading time.Duration // how long it took to read that

	record func(gate.Note) error // what the gate leaves once it is closed; nil before
	turn   int64                 // the one under way; under telling, but for the guest's goroutine, which alone sets it
}

func newRun(spec *Spec, plan Plan) *run {
	r := &run{reporter: reporter{spec: spec, report: newReport(spec, plan)}, plan: plan}
	r.values = redactor{tell: &r.reporter, secrets: spec.Components.Secrets}
	return r
}

// Launch runs the agent under its plan and reports how it ended. It always
// returns a report; what went wrong is in it.
func Launch(ctx context.Context, spec *Spec) *Report {
	plan, err := spec.plan()
	if err != nil {
		r := newReport(spec, Plan{})
		r.refuse(Refused, StatusInput, places.Textf("%v", err))
		return r
	}
	r := newRun(spec, plan)
	r.out = capture{max: limitOr(plan.Limits, caps.StdoutMaxBytes), live: spec.Stdout, hold: r.hold}
	r.err = capture{max: limitOr(plan.Limits, caps.StderrMaxBytes), live: spec.Stderr, hold: r.hold}
	if spec.Body != nil { // whose memory is not the engine's
		r.out.hold, r.err.hold, r.out.whole, r.err.whole = nil, nil, true, true
	}
	r.values.watch(&r.out, &r.err)
	compiling := r.compile(ctx)
	if err := r.open(); err != nil {
		r.report.refuse(AuditFailed, StatusAudit, places.Textf("%v", err))
		(<-compiling).close()
		return r.report
	}
	r.event("run.started", map[string]any{"agent": spec.Agent, "version": spec.Version})
	switch begun := r.start() && r.readInput(ctx); {
	case begun && spec.Body != nil:
		serve(ctx, r)
	case begun:
		r.execute(ctx, compiling)
	default:
		(<-compiling).close()
	}
	r.finish()
	return r.report
}

// DryRun is the report of a launch that is not made: refused for every reason
// that is known before the module is compiled.
func DryRun(spec *Spec) (*Report, error) {
	plan, err := spec.plan()
	if err != nil {
		return nil, err
	}
	r := newReport(spec, plan)
	r.DryRun, r.Outcome, r.Notices = true, OK, spec.notices()
	if spec.Body != nil {
		r.settled(spec, plan)
		return r, nil
	}
	if err := CheckModule(spec.Agent, spec.Module, spec.Compiler, spec.Components.Added...); err != nil {
		r.refuse(Refused, StatusInput, places.Textf("%v", err))
		return r, nil
	}
	r.settled(spec, plan)
	for _, low := range spec.Policy.LowerLimits(plan.Limits) {
		r.Warnings = append(r.Warnings, low.String())
	}
	return r, nil
}

// open opens the journal and the gate. Nothing happens unrecorded, so a run
// without a journal is no run.
func (r *run) open() error {
	s := r.spec
	journal, err := s.OpenJournal(audit.Head{
		RunID: s.RunID, TraceID: s.TraceID, Tenant: s.Tenant, Agent: s.Agent, ParentRun: s.ParentRun,
		BundleDigest: s.BundleDigest, EffectiveDigest: digestOf(r.plan.Effective),
	})
	if err != nil {
		return fmt.Errorf("opening the audit journal: %w", err)
	}
	if s.Components.Secrets != nil {
		journal = &discreetJournal{journal, &r.values}
	}
	r.journal = journal
	opt := gate.Options{
		KeepAllowed: s.KeepAllowed, KeepDenied: s.KeepDenied, MaxCalls: limitOr(r.plan.Limits, caps.HostcallsMax),
		Floor: s.Taint.Floor, Durability: s.Durability,
		Now: func() int64 { return s.Now().UnixMilli() },
	}
	if r.gate, err = gate.New(r.plan.Effective, journal, opt); err != nil {
		return errors.Join(err, journal.Close())
	}
	r.values.note = r.gate.Note
	return nil
}

// start records the beginning of the run and everything that is settled before
// the first guest instruction. It reports whether the guest may run.
func (r *run) start() bool {
	err := r.journal.Event(&audit.Event{
		Kind: audit.KindRunStart, Base: r.report.Base, Effective: r.report.Effective, Except: r.report.Except,
		LimitsSummary: r.report.Limits, PolicyPresent: r.spec.Policy.Present,
		Layers: gate.Recorded(r.plan.Base, r.spec.Policy.recorded()), Floor: gate.RecordedFloor(r.spec.Taint.Floor),
	})
	r.logPlan(r.plan)
	if cause := r.spec.Taint.Cause; cause != "" {
		err = errors.Join(err, r.gate.Taint(cause))
	}
	if !r.spec.Relaxed { // else they are notices
		for _, p := range r.spec.Paths.Redirected() {
			r.warn("%s", places.Host(p.String()))
		}
	}
	for _, w := range r.spec.notices() {
		r.report.Notices = append(r.report.Notices, w)
		r.warn("%s", places.Host(w))
	}
	if r.spec.ExecCaveat != "" && holds(r.plan.Effective, caps.Exec) {
		r.warn("%s", places.Host(r.spec.ExecCaveat))
	}
	r.uncounted(r.plan)
	for _, c := range r.plan.Ignored() {
		err = errors.Join(err, r.gate.Note(gate.Note{
			Cap: "caps.extra", Op: "_start", Target: c.Grant.String(), Layer: c.Layer, Code: caps.NotInBase, Always: true,
		}))
	}
	if r.plan.Effective.IsEmpty() {
		err = errors.Join(err, r.gate.Note(gate.Note{Cap: "caps.empty", Op: "_start", Code: caps.CapsEmpty, Always: true}))
	}
	if err != nil {
		r.report.refuse(AuditFailed, StatusAudit, places.Textf("%v", err))
		return false
	}
	return r.report.settled(r.spec, r.plan)
}

func (r *run) execute(ctx context.Context, compiling <-chan compiled) {
	funcs, stop, err := r.link()
	c := <-compiling
	if err != nil {
		c.close()
		r.failStart(err)
		return
	}
	if c.err == nil {
		c.err = c.module.Link(ctx, funcs)
	}
	if c.err != nil {
		stop()
		r.failStart(c.err)
		return
	}
	defer c.close()
	r.report.Usage.CompileMS, r.report.Usage.Compiled = c.took.Milliseconds(), !c.module.Cached()
	if err := c.module.CacheErr(); err != nil {
		r.warn("%v", err) // each launch compiles anew until somebody sees to it
	}
	r.event("run.compiled", map[string]any{"cached": c.module.Cached(), "ms": r.report.Usage.CompileMS})
	free, err := c.module.Reserve(ctx, r.spec.Above == nil)
	if err != nil {
		stop()
		r.failStart(err)
		return
	}
	r.reserved(c.module.MemoryBytes())
	r.event("run.running", nil)
	r.module = c.module
	end := c.module.Run(ctx, guest.RunConfig{
		Wall: wallTime(r.plan.Limits), Gone: r.reading,
		Fuel: instructions(r.plan.Limits), Grace: r.spec.grace(),
	})
	r.shut(end.Stopped)
	if end.Abandoned {
		r.warn("a call that the guest made did not end with the run and was left behind")
		go func() {
			<-end.Stopped
			stop()
			free()
		}()
	} else {
		stop()
		free()
	}
	r.ended(end)
}

// reserved makes the memory that the process had for the run its limit, where
// that is less than the run might have.
func (r *run) reserved(bytes int64) {
	if most, _ := r.plan.Limits.Get(caps.MemoryBytes); bytes >= most {
		return
	}
	r.scarce = true
	r.plan.Limits = r.plan.Limits.With(caps.MemoryBytes, bytes)
	r.report.Limits = r.plan.Limits.Map()
}

// readInput reads the input of a guest that is not there yet. It reports whether
// the guest may run: an input that does not come in time is the run's timeout.
func (r *run) readInput(ctx context.Context) bool {
	r.input = r.spec.Input
	if r.spec.ReadInput == nil {
		return true
	}
	began := r.spec.Now()
	waiting, cancel := context.WithTimeout(ctx, wallTime(r.plan.Limits))
	defer cancel()
	data, err := r.spec.ReadInput(waiting)
	r.input, r.reading = data, r.spec.Now().Sub(began)
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil:
		r.report.refuse(Cancelled, StatusCancelled, places.Textf("%s", endingOf(context.Cause(ctx), "interrupted before the guest began")))
	case waiting.Err() != nil:
		r.report.refuse(Timeout, StatusTimeout,
			places.Textf("the run passed limits.wall_time_ms = %d while it waited for its input",
				wallTime(r.plan.Limits).Milliseconds()))
	default:
		r.report.refuse(Refused, StatusInput, places.Textf("%v", err))
	}
	r.report.Usage.WallMS = r.reading.Milliseconds()
	return false
}

// shut closes the gate. A guest that may still be in a call has ended when ended
// is closed.
func (r *run) shut(ended <-chan struct{}) {
	if r.record == nil {
		r.record = r.gate.Close(ended)
	}
}

// finish records the end and completes the report. The gate is closed first: from
// there on nobody else uses the journal.
func (r *run) finish() {
	r.shut(nil)
	r.out.flush()
	r.err.flush()
	r.report.Message = r.values.scrubText(r.report.Message, "the report")
	r.usage()
	r.report.Untrusted = r.untrusted()
	kind := audit.KindRunFailed
	switch r.report.Outcome {
	case OK, Exit:
		kind = audit.KindRunComplete
	case Refused:
		if r.report.ExitCode == StatusPolicy {
			kind = audit.KindPolicyRejected
		}
	}
	e := &audit.Event{
		Kind: kind, Outcome: string(r.report.Outcome), ExitCode: r.report.ExitCode,
		Message: r.report.Message, Usage: r.report.Usage.summary(), Violations: messages(r.report.Violations),
	}
	if kind != audit.KindRunComplete {
		e.Severity, e.Reason = audit.Error, string(r.report.Outcome)
	}
	if err := errors.Join(r.gate.Err(), r.values.recordLate(r.record), r.journal.Event(e), r.journal.Sync(),
		r.journal.Close()); err != nil && r.report.Outcome != AuditFailed {
		r.report.refuse(AuditFailed, StatusAudit, places.Textf("%v", err))
	}
	r.logEnd()
	r.event("run.finished", map[string]any{"outcome": r.report.Outcome, "exit_code": r.report.ExitCode})
	r.telling.Lock()
	defer r.telling.Unlock()
	r.told = true
}

// settled refuses what the plan itself refuses. It reports whether the guest
// may run.
func (r *Report) settled(spec *Spec, plan Plan) bool {
	outcome, status, why := refusal(spec, plan)
	if outcome != OK {
		r.refuse(outcome, status, why)
		r.Violations = violations(spec, plan)
	}
	return outcome == OK
}

// hold counts n bytes of output as memory of the guest that is under way.
func (r *run) hold(n int64) error { return r.module.Hold(n) }
