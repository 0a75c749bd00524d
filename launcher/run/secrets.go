package run

import (
	"errors"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/audit"
)

// A leak is a secret whose value was taken out of something.
type leak struct{ id, from string }

// A redactor takes the values of a run's secrets out of all that leaves the run.
// What it is told of a guest that was left behind counts until the report is given out.
type redactor struct {
	tell    *reporter
	secrets hostcalls.Secrets       // nil: there are none
	note    func(n gate.Note) error // in the records of the run

	// Under tell.telling.
	replacements int64       // values that were taken out
	leaks        []leak      // of those, each secret and place once
	late         []gate.Note // of those, what came when the gate was closed
}

// watch takes the values of this run's secrets out of what the guest prints.
func (r *redactor) watch(out, err *capture) {
	if r.secrets == nil {
		return
	}
	out.scrub = r.secrets.Stream(func(id string) { r.replaced(id, "stdout", "fd_write") })
	err.scrub = r.secrets.Stream(func(id string) { r.replaced(id, "stderr", "fd_write") })
}

// replaced counts a value that was taken out; the first one of a secret in a
// place is told to the operator and recorded.
func (r *redactor) replaced(id, from, op string) {
	if !r.leaked(leak{id, from}) {
		return
	}
	r.tell.warn("a value of the secret %s was taken out of %s", id, from)
	n := gate.Note{Cap: caps.AuditName(caps.Secrets, caps.Use), Op: op, Target: id, Code: caps.SecretNotPermitted}
	// A record that cannot be made shuts the gate, which ends the run.
	if err := r.note(n); errors.Is(err, gate.ErrClosed) {
		r.tell.telling.Lock()
		defer r.tell.telling.Unlock()
		r.late = append(r.late, n)
	}
}

// leaked counts a value that was taken out; it is true for the first of a secret
// in a place.
func (r *redactor) leaked(l leak) bool {
	r.tell.telling.Lock()
	defer r.tell.telling.Unlock()
	if r.tell.told {
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
func (r *redactor) recordLate(record func(gate.Note) error) (err error) {
	r.tell.telling.Lock()
	late := r.late
	r.late = nil
	r.tell.telling.Unlock()
	for _, n := range late {
		err = errors.Join(err, record(n))
	}
	return err
}

func (r *redactor) scrubText(s, from string) string {
	if r.secrets == nil || s == "" || !r.secrets.Knows() {
		return s
	}
	return string(r.secrets.Scrub([]byte(s), func(id string) { r.replaced(id, from, "_start") }))
}

// A discreetJournal keeps values out of records.
type discreetJournal struct {
	Journal
	values *redactor
}

// Decide records d without values in its target.
func (j *discreetJournal) Decide(d *audit.Decision) (audit.Mark, error) {
	if t := j.values.scrubText(d.Target, "the audit log"); t != d.Target {
		clean := *d
		clean.Target = t
		return j.Journal.Decide(&clean)
	}
	return j.Journal.Decide(d)
}

// Event records e without values in its texts.
func (j *discreetJournal) Event(e *audit.Event) error {
	clean := *e
	clean.ErrorSummary = j.values.scrubText(e.ErrorSummary, "the audit log")
	clean.Message = j.values.scrubText(e.Message, "the audit log")
	clean.Label = j.values.scrubText(e.Label, "the audit log")
	return j.Journal.Event(&clean)
}
