// Package launcher launches agents under policies and reports how they ended: it is
// what a Go program embeds.
//
// [Open] a home, [Launcher.Launch] a [Request], read the [Report]. A request only
// narrows what the bundle asks for; every call of the agent is decided and recorded
// as in `rlp launch`. A launch needs child processes, which are this program again
// where main begins with [Main], or rlp where [Options.Helper] names it. Nothing of
// theirs is ever done in the program's own process instead.
package launcher

import (
	"runloop.dev/rlp/launcher/run"
)

// What a launch is told by: see [Report].
type (
	// A Report is what rlp says of one run: the document of `rlp launch --json`.
	Report = run.Report
	// An Outcome is how a run ended, as the report and the audit log name it.
	Outcome = run.Outcome
	// A Violation is one reason why the policy refuses a launch.
	Violation = run.Violation
	// A Change is one capability that a layer took away, or asked for in vain.
	Change = run.Change
	// Usage is what a run used, FamilyUsage what of one family.
	Usage = run.Usage
	// FamilyUsage counts the decisions of one family.
	FamilyUsage = run.FamilyUsage
	// A Lane is where code executes, and how well each control is kept there.
	Lane = run.Lane
	// An Attachment is a tool of a bundle, attached or not.
	Attachment = run.Attachment
	// Inputs are what a guest is given turn by turn.
	Inputs = run.Inputs
	// An Ending is the cause of a context whose end is no interruption by the operator.
	Ending = run.Ending
)

// ErrReload is the operator's word, in the place of an input, that their files are
// to be read again now.
var ErrReload = run.ErrReload

// The outcomes of the contract.
const (
	OK          = run.OK
	Exit        = run.Exit
	Timeout     = run.Timeout
	Fuel        = run.Fuel
	Memory      = run.Memory
	Trap        = run.Trap
	Unsupported = run.Unsupported
	Refused     = run.Refused
	Cancelled   = run.Cancelled
	AuditFailed = run.AuditFailed
	Fault       = run.Fault // of rlp itself or of what it stands on, which the agent did not cause
)

// Exit statuses of rlp, beside the agent's own.
const (
	StatusOK          = run.StatusOK
	StatusFinding     = run.StatusFinding
	StatusUsage       = run.StatusUsage
	StatusInput       = run.StatusInput
	StatusUnavailable = run.StatusUnavailable
	StatusAudit       = run.StatusAudit
	StatusPolicy      = run.StatusPolicy
	StatusUnsupported = run.StatusUnsupported
	StatusTimeout     = run.StatusTimeout
	StatusCancelled   = run.StatusCancelled
	StatusFuel        = run.StatusFuel
	StatusMemory      = run.StatusMemory
)
