package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/launcher/places"
)

// An Ending is the cause of a context whose end is no interruption by the
// operator: what the report and the record of a run then say. It counts as
// [context.Canceled] wherever that is asked for.
type Ending struct{ Why string }

func (e *Ending) Error() string { return e.Why }

// Is makes it a cancellation.
func (e *Ending) Is(target error) bool { return target == context.Canceled }

func endingOf(err error, otherwise string) string {
	var e *Ending
	if errors.As(err, &e) {
		return e.Why
	}
	return otherwise
}

// failStart says why the guest never ran.
func (r *run) failStart(err error) {
	var gone *goneError
	switch {
	case r.gate.Err() != nil:
		r.report.refuse(AuditFailed, StatusAudit, places.Textf("%v", r.gate.Err()))
	case errors.As(err, &gone):
		r.report.refuse(Refused, StatusPolicy, gone.why)
	case errors.Is(err, context.Canceled):
		r.report.refuse(Cancelled, StatusCancelled, places.Textf("%s", endingOf(err, "interrupted before the guest began")))
	case errors.Is(err, guest.ErrCompiler), errors.Is(err, guest.ErrFull), errors.Is(err, errBroke):
		r.report.refuse(Refused, StatusUnavailable, places.Textf("%v", err))
	default:
		r.report.refuse(Refused, StatusInput, ofModule(err))
	}
}

func (r *run) ended(end guest.End) {
	rep := r.report
	rep.Outcome = outcomeOf(end)
	if rep.Outcome == Fault {
		r.note(slog.LevelError, "rlp failed", slog.String("what", end.In),
			slog.String("where", r.values.scrubText(fmt.Sprint(end.Err), "the log")))
	}
	if r.gate.Err() != nil {
		rep.Outcome = AuditFailed
	}
	rep.Usage.WallMS, rep.Usage.WaitedMS = end.Wall.Milliseconds(), end.Waited.Milliseconds()
	rep.Usage.Fuel = (end.Fuel + fuelUnit - 1) / fuelUnit
	rep.Usage.MemoryBytes = end.PeakMemory
	r.spend(end)
	if !end.Abandoned { // or it may be about to change
		rep.Result = json.RawMessage(r.host.Result())
		rep.Children = r.host.Children()
	}
	switch rep.Outcome {
	case OK, Exit:
		code := end.ExitCode
		rep.GuestExit, rep.ExitCode = &code, statusOf(code)
	case AuditFailed:
		rep.ExitCode, rep.Message = StatusAudit, r.gate.Err().Error()
	default:
		rep.ExitCode, rep.Message = outcomes[rep.Outcome].status, r.endMessage(end)
	}
}

// endMessage says what ended the guest. Only its time can be another one than it
// was given at its launch.
func (r *run) endMessage(end guest.End) string {
	l := r.plan.Limits
	switch r.report.Outcome {
	case Timeout:
		text := fmt.Sprintf("the run passed limits.wall_time_ms = %d", end.Given.Milliseconds())
		if most, _ := l.Get(caps.WallTimeMS); most != end.Given.Milliseconds() {
			return text
		}
		return text + r.spec.Policy.lower(caps.WallTimeMS, l)
	case Fuel:
		n, _ := l.Get(caps.CPUFuel)
		return fmt.Sprintf("the run used up limits.cpu_fuel = %d", n) + r.spec.Policy.lower(caps.CPUFuel, l)
	case Memory:
		n, _ := l.Get(caps.MemoryBytes)
		if r.scarce {
			return fmt.Sprintf("the guest asked for more than memory_bytes = %d, which is all that one run of this process "+
				"can have; [serve] memory in config.toml bounds its runs together, else three quarters of what the machine or "+
				"its control group has", n)
		}
		return fmt.Sprintf("the guest asked for more than limits.memory_bytes = %d", n) +
			r.spec.Policy.lower(caps.MemoryBytes, l)
	case Fault:
		return faultMessage(end)
	case Cancelled:
		if r.spec.ParentRun != "" { // whatever ended that one is in its own record
			return "the run that launched this one ended"
		}
		return endingOf(end.Err, "interrupted by the operator")
	}
	return end.Trap
}

func (r *run) usage() {
	u := &r.report.Usage
	u.StdoutBytes, u.StdoutTruncated = r.out.total, r.out.truncated
	u.StderrBytes, u.StderrTruncated = r.err.total, r.err.truncated
	r.report.Stdout = r.values.scrubText(r.out.kept.String(), "stdout") // with what was learned since
	r.report.Stderr = r.values.scrubText(r.err.kept.String(), "stderr")
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
	u.SecretsReplaced = r.values.replacements
	if r.spec.Inputs != nil {
		u.Turns = r.turn
	}
}

// untrusted is what marked the run; nil if nothing did.
func (r *run) untrusted() *Untrusted {
	if cause, marked := r.gate.Tainted(); marked {
		return &Untrusted{Cause: cause}
	}
	return nil
}

// spend writes down what the run used. One that was left behind may still be
// using something: it is taken to have used all that it had.
func (r *run) spend(end guest.End) {
	s := &r.report.Spent
	s.Ran, s.Instructions = true, end.Fuel
	if !end.Abandoned {
		s.Calls, s.LeaseUses = r.gate.Calls(), r.gate.LeaseUses()
		return
	}
	r.host.LeftBehind()
	s.Calls, _ = r.plan.Limits.Get(caps.HostcallsMax)
	s.LeaseUses = map[caps.Grant]int64{}
	if all := instructions(r.plan.Limits); all != nil {
		s.Instructions = *all
	}
	for _, l := range r.plan.Effective.Leases() {
		if l.MaxUses != caps.Unbounded {
			s.LeaseUses[l.Grant] = l.MaxUses
		}
	}
}
