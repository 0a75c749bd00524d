package run

import (
	"errors"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/audit"
)

// A leak is a secret whose value was taken out of something.
type leak struct{ id, from string }

// watch takes the values of this run's secrets out of what the guest prints.
func (r *run) watch() {
	if r.spec.Components.Secrets == nil {
		return
	}
	r.out.scrub = r.spec.Components.Secrets.Stream(func(id string) { r.replaced(id, "stdout", "fd_write") })
	r.err.scrub = r.spec.Components.Secrets.Stream(func(id string) { r.replaced(id, "stderr", "fd_write") })
}

// replaced counts a value that was taken out; the first one of a secret in a
// place is told to the operator and recorded.
func (r *run) replaced(id, from, op string) {
	if !r.leaked(leak{id, from}) {
		return
	}
	r.warn("a value of the secret %s was taken out of %s", id, from)
	n := gate.Note{Cap: caps.AuditName(caps.Secrets, caps.Use), Op: op, Target: id, Code: caps.SecretNotPermitted}
	// A record that cannot be made shuts the gate, which ends the run.
	if err := r.gate.Note(n); errors.Is(err, gate.ErrClosed) {
		r.telling.Lock()
		defer r.telling.Unlock()
		r.late = append(r.late, n)
	}
}

// leaked counts a value that was taken out; it is true for the first of a secret
// in a place.
func (r *run) leaked(l leak) bool {
	r.telling.Lock()
	defer r.telling.Unlock()
	if r.told {
		return false
	}
	r.replacements++
	if slices.Contains(r.leaks, l) {
		return false
	}
	r.leaks = append(r.leaks, l)
	return true
}

// recordLate records what was taken out since the gate was closed, from what is
// in the report.
func (r *run) recordLate() (err error) {
	r.telling.Lock()
	late := r.late
	r.late = nil
	r.telling.Unlock()
	for _, n := range late {
		err = errors.Join(err, r.record(n))
	}
	return err
}

func (r *run) scrubText(s, from string) string {
	if r.spec.Components.Secrets == nil || s == "" || !r.spec.Components.Secrets.Knows() {
		return s
	}
	return string(r.spec.Components.Secrets.Scrub([]byte(s), func(id string) { r.replaced(id, from, "_start") }))
}

// A discreetJournal keeps values out of records.
type discreetJournal struct {
	Journal
	run *run
}

// Decide records d without values in its target.
func (j *discreetJournal) Decide(d *audit.Decision) (audit.Mark, error) {
	if t := j.run.scrubText(d.Target, "the audit log"); t != d.Target {
		clean := *d
		clean.Target = t
		return j.Journal.Decide(&clean)
	}
	return j.Journal.Decide(d)
}

// Event records e without values in its texts.
func (j *discreetJournal) Event(e *audit.Event) error {
	clean := *e
	clean.ErrorSummary = j.run.scrubText(e.ErrorSummary, "the audit log")
	clean.Message = j.run.scrubText(e.Message, "the audit log")
	clean.Label = j.run.scrubText(e.Label, "the audit log")
	return j.Journal.Event(&clean)
}
