package run

import (
	"errors"
	"runtime"
	"strings"

	"runloop.dev/rlp/internal/engine/guest"
)

// An Outcome is how a run ended, as the report and the audit log name it.
type Outcome string

// The outcomes of the contract.
const (
	OK          Outcome = "ok"
	Exit        Outcome = "exit"
	Timeout     Outcome = "timeout"
	Fuel        Outcome = "fuel"
	Memory      Outcome = "memory"
	Trap        Outcome = "trap"
	Unsupported Outcome = "unsupported"
	Refused     Outcome = "refused"
	Cancelled   Outcome = "cancelled"
	AuditFailed Outcome = "audit_failed"
	Fault       Outcome = "fault" // of rlp itself or of what it stands on, which the agent did not cause
)

// Exit statuses of rlp, beside the agent's own.
const (
	StatusOK          = 0
	StatusFinding     = 1
	StatusUsage       = 2
	StatusInput       = 65
	StatusUnavailable = 69
	StatusAudit       = 74
	StatusPolicy      = 77
	StatusUnsupported = 78
	StatusTimeout     = 124
	StatusCancelled   = 130
	StatusFuel        = 137
	StatusMemory      = 138
)

// outcomes is the one table of how an end is told: its exit status and, where
// there is one, the code of the marker line.
var outcomes = map[Outcome]struct {
	status int
	marker string
}{
	OK:          {StatusOK, ""},
	Timeout:     {StatusTimeout, "WASM_TIMEOUT"},
	Fuel:        {StatusFuel, "WASM_CPU_FUEL_EXHAUSTED"},
	Memory:      {StatusMemory, "WASM_MEMORY_LIMIT_EXCEEDED"},
	Trap:        {StatusFinding, "WASM_RUNTIME_TRAP"},
	Unsupported: {StatusUnsupported, "WASM_UNSUPPORTED_PLATFORM_CAPABILITY"},
	Cancelled:   {StatusCancelled, ""},
	AuditFailed: {StatusAudit, ""},
	Fault:       {StatusUnavailable, ""},
}

// reserved are the statuses that say something of rlp's own, so that an agent's
// exit code never looks like one of them.
var reserved = map[uint32]bool{
	StatusUsage: true, StatusInput: true, StatusUnavailable: true, StatusAudit: true, StatusPolicy: true,
	StatusUnsupported: true, StatusTimeout: true, StatusCancelled: true, StatusFuel: true, StatusMemory: true,
}

// statusOf is the exit status of rlp for an agent that exited with code.
func statusOf(code uint32) int {
	if code > 255 || reserved[code] {
		return StatusFinding
	}
	return int(code)
}

// outcomeOf classifies how the guest ended. It looks at the host's own state
// only, never at a number or a text that the guest can produce.
func outcomeOf(end guest.End) Outcome {
	switch end.Kind {
	case guest.OK:
		return OK
	case guest.Exit:
		if end.ExitCode == 0 {
			return OK
		}
		return Exit
	case guest.Timeout:
		return Timeout
	case guest.Fuel:
		return Fuel
	case guest.Memory:
		return Memory
	case guest.Cancelled:
		return Cancelled
	case guest.Trap:
		return Trap
	}
	return Fault
}

// faultMessage is what is told of a fault: no stack, and no path or value that an
// error may have in it. Those are for the log alone.
func faultMessage(end guest.End) string {
	text := "rlp itself failed"
	if end.In != "" {
		text += " in " + end.In
	}
	text += ", not the agent: "
	var fault runtime.Error
	var unable guest.Unable
	switch {
	case errors.As(end.Err, &fault):
		return text + strings.TrimPrefix(fault.Error(), "runtime error: ")
	case errors.As(end.Err, &unable):
		return text + string(unable)
	}
	return text + "its log says why"
}
