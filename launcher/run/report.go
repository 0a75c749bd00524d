package run

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/launcher/places"
)

// A Report is what rlp says of one run: the document of `rlp launch --json`.
type Report struct {
	RunID        string           `json:"run_id"`
	TraceID      string           `json:"trace_id"`
	Tenant       string           `json:"tenant"`
	Agent        string           `json:"agent"`
	Version      string           `json:"version"`
	BundleDigest string           `json:"bundle_digest"`
	Outcome      Outcome          `json:"outcome"`
	ExitCode     int              `json:"exit_code"`
	GuestExit    *uint32          `json:"guest_exit_code"`
	DryRun       bool             `json:"dry_run,omitempty"`
	Base         []string         `json:"base"`
	Effective    []string         `json:"effective"`
	Except       []string         `json:"except,omitempty"` // taken out of the middle of effective
	Changes      []Change         `json:"changes"`
	Limits       map[string]int64 `json:"limits"`
	Generation   int64            `json:"generation"` // 1, and one more for each time that the run was given another set
	Usage        Usage            `json:"usage"`
	Result       json.RawMessage  `json:"result"`
	Stdout       string           `json:"stdout"`
	Stderr       string           `json:"stderr"`

	// Tools are those of the bundle, attached or not.
	Tools []Attachment `json:"tools,omitempty"`

	// Lane is where the code of the run executed, and what was enforced there:
	// the lane of its programs where it holds exec, wasm otherwise.
	Lane *Lane `json:"lane"`

	// Children are the runs that this one launched.
	Children []hostcalls.Child `json:"children,omitempty"`
	// Spent is for the run that launched this one.
	Spent Spent `json:"-"`

	// Message says in one line why a run did not end well; empty when it did.
	Message string `json:"message,omitempty"`
	// Untrusted says what marked the run as holding untrusted content; nil:
	// nothing did.
	Untrusted *Untrusted `json:"untrusted,omitempty"`
	// Violations are all reasons why the policy refuses the launch.
	Violations []Violation `json:"violations,omitempty"`
	// Warnings are what the operator should know though the run went on.
	Warnings []string `json:"warnings,omitempty"`
	// Notices are those of the warnings that the operator is shown even where no
	// log is read: what they wrote does not apply as they believe.
	Notices []string `json:"-"`
	// Told is the report as somebody may know it who does not operate the host; nil:
	// it is that, or nobody else asks ([Report.For]).
	Told *Report `json:"-"`

	changes  []caps.Change
	why      places.Text   // the message, where it says why nothing was executed
	warnings []places.Text // those that the run itself gave
}

// For is the report for somebody to whom places of the host are named as n does. What
// is said of the host in words alone is left out.
func (r *Report) For(n *places.Names) *Report {
	told := *r
	told.Base, told.Effective, told.Changes = n.Capabilities(r.Base), n.Capabilities(r.Effective), flatten(r.changes, n)
	if told.Message = places.Ended(string(r.Outcome), r.Message); told.Message != r.Message {
		if why, is := r.why.To(n); is {
			told.Message = cutMessage(why)
		}
	}
	told.Warnings, told.Violations = nil, nil
	for _, w := range r.warnings {
		if text, is := w.To(n); is {
			told.Warnings = append(told.Warnings, text)
		}
	}
	for _, v := range r.Violations {
		told.Violations = append(told.Violations, v.told(n))
	}
	told.Tools = slices.Clone(r.Tools)
	for i := range told.Tools {
		t := &told.Tools[i]
		t.Capability, t.Needs = n.Capability(t.Capability), n.Capabilities(t.Needs)
	}
	if r.Untrusted != nil {
		of := *r.Untrusted
		of.Cause, told.Untrusted = n.Capability(of.Cause), &of
	}
	return &told
}

// told is v for somebody to whom places are named as n does.
func (v Violation) told(n *places.Names) Violation {
	text, is := v.text.To(n)
	if !is {
		text = places.Ended(string(Refused), v.Message)
	}
	v.Message, v.Capability = text, n.Capability(v.Capability)
	return v
}

// Usage is what a run used.
type Usage struct {
	WallMS          int64 `json:"wall_ms"`
	WaitedMS        int64 `json:"waited_ms,omitempty"` // for the operator, beside wall_ms
	Turns           int64 `json:"turns,omitempty"`     // of a run that is given several inputs
	Fuel            int64 `json:"fuel"`                // in units of cpu_fuel, rounded up
	CompileMS       int64 `json:"compile_ms"`
	Compiled        bool  `json:"compiled"` // false: the module came from the cache
	MemoryBytes     int64 `json:"memory_bytes"`
	Hostcalls       int64 `json:"hostcalls"`
	Allowed         int64 `json:"allowed"`
	Denied          int64 `json:"denied"`
	StdoutBytes     int64 `json:"stdout_bytes"`
	StdoutTruncated bool  `json:"stdout_truncated"`
	StderrBytes     int64 `json:"stderr_bytes"`
	StderrTruncated bool  `json:"stderr_truncated"`
	// SecretsReplaced counts values of secrets that were taken out of what the
	// guest printed, returned, logged, stored or was given.
	SecretsReplaced int64 `json:"secrets_replaced,omitempty"`

	// Families counts decisions by family key, such as "fs": {"allowed", "denied"}.
	Families map[string]FamilyUsage `json:"families"`
}

// FamilyUsage counts the decisions of one family.
type FamilyUsage struct {
	Allowed int64 `json:"allowed"`
	Denied  int64 `json:"denied"`
}

// Marker is the line that comes first on stderr when a run was ended by a
// boundary or a trap; empty otherwise.
func (r *Report) Marker() string {
	code := outcomes[r.Outcome].marker
	if code == "" {
		return ""
	}
	return fmt.Sprintf("RLP_WASM_ERROR code=%s exit_code=%d message=%s\n", code, r.ExitCode, printable.Line(r.Message))
}

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

// Spent is what a run used of what the run that launched it has: it is paid for
// there, and no part of a report.
type Spent struct {
	Ran                 bool // the guest was started
	Calls, Instructions int64
	LeaseUses           map[caps.Grant]int64
}
