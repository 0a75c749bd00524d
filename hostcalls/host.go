// Package hostcalls is the import module runloop_v1: what a guest may ask of
// the host beside WASI. Each import is defined once, by [define]: how its
// arguments are decoded, what it would touch, and what it does once the gate
// has permitted it. A call that skips the gate cannot be written into the table.
//
// The package knows neither the engine nor the store: it works on a view of
// guest memory and on [Components].
package hostcalls

import (
	"context"
	"sync"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/hostcalls/lend"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/record/audit"
)

// ImportModule is the name under which guests import these functions.
const ImportModule = "runloop_v1"

// Components do the work of the families once the gate has permitted it. A
// family whose component is nil is checked and recorded, and answers notsup.
type Components struct {
	KB KB
	// Masks hide what a run may not see raw; nil: nothing is shown that is not.
	Masks   Masks
	HTTP    HTTP
	Secrets Secrets
	Model   Model
	Exec    Exec
	MCP     MCP
	// Tools are those that the bundle attaches.
	Tools []Tool
	// Added are the host functions of the embedding program.
	Added []Added
	// Confirm asks before what a person has to say yes to; nil: nobody can be asked.
	Confirm Confirm
	// ConfirmExternal has it asked before everything that changes something outside.
	ConfirmExternal bool
	Agents          Agents
}

// Config is what one run's imports work with.
type Config struct {
	Components
	Gate *gate.Gate
	// Lock is held by whoever makes a call, but while it waits; nil: one alone does.
	Lock sync.Locker
	// Sources say which inputs mark the run.
	Sources Sources
	// Now is the time in nanoseconds since 1970, for time_now.
	Now func() int64
	// Log receives what the guest logs.
	Log func(level, message string)
	// Warn receives what the operator should know though the run goes on; nil: nobody.
	Warn func(message string)
	// Failed receives why a call failed in the host, for its log alone; nil: nobody.
	Failed func(op, why string)
	// Replaced is told that a secret was taken out of what an import passed; nil: nobody is.
	Replaced func(id, op string)
	// Turns are the run's; nil: it has one.
	Turns Turns
	// Limits are the run's; the families enforce those that are theirs.
	Limits caps.Limits
	// Left says what is left of time and fuel to a call that is under way; nil: unknown.
	Left Left
	// Above is the budget of the run that launched this one; nil: nobody did.
	Above *budget.Budget
}

// A Host answers the imports of one run. It is used by the goroutine that runs
// the guest.
type Host struct {
	cfg Config
	redactor
	conditions
	taint
	kbView
	answers

	result   []byte
	returned abi.Held // result
	budget   *budget.Budget
	children []Child
	net      netState
	exec     execState
	mcpOps   map[string]*gate.Op // of tools of servers, by scope
	tools    []*attachedTool     // nil before the first is asked for

	remark  string      // what the record of this call's end should say beside "ok"
	consent string      // and of it
	done    audit.Event // the record of the last call's end; here, so that making one allocates nothing

	others uint64 // calls of imports whose repeated calls may be answered otherwise, from 1
}

// An execState is what a run has done with programs.
type execState struct {
	atLaunch caps.Set // what the run held before its first instruction
}

// A netState is what a run has used of the network.
type netState struct {
	op    *gate.Op
	named bool     // the host that was asked for last is named by the base
	names []string // of the headers of the last answer
	spare lend.Spare
	plain map[string][]string // of a request that names none

	deadline deadline // of this call
}

// A deadline ends a call that takes too long. What did not have to end serves
// the next call of the run: a context and a timer for each cost as much as
// sending the request.
type deadline struct {
	run    context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// An attachedTool is a tool in a run.
type attachedTool struct {
	*Tool
	op    *gate.Op
	spent budget.Tool
}

// A def is one import: its name, how many (ptr, len) pairs it takes before the
// response's, and how it is bound to a run.
type def struct {
	module string // "": [ImportModule]; else name begins with it and a dot
	name   string // in records
	args   int
	gated  bool
	framed bool
	family caps.Family
	most   int  // what it may pass, in bytes, when that is more than MaxArguments
	empty  bool // what it does was left out
	bind   func(h *Host, op *gate.Op) body
}

// A body is an import bound to a run: arguments in, response (a part of h.out
// or memory of its own) out.
type body struct {
	// call does what is asked, and says what the gate answered, when it judged
	// that. A place other than 0 is where redo finds the request again.
	call func(ctx context.Context, in []string, place int) ([]byte, gate.Answer, error)
	// redo does what call did at a place once more, with the gate's permit; nil
	// when the same arguments may get another answer.
	redo func(ctx context.Context, p gate.Permit, place int) ([]byte, error)
}

// A redactor takes the values of a run's secrets out of what goes to the guest, and
// of what it hands to the host.
type redactor struct {
	cfg     *Config
	calling string              // the import that is being answered, where there are secrets
	bound   map[string][]string // the secrets that the base binds to a host, by host
}

// conditions are what layers say of how something granted may be used, beyond
// what may be touched. They are read from the set that holds now, where they
// are the strictest of all layers; each call that one bears on asks here before
// anything is done.
type conditions struct {
	cfg     *Config
	unmetBy string // the condition that this call does not meet
}

// A taint marks a run as holding what is not to be trusted.
type taint struct {
	cfg    *Config
	values *redactor
}

// A kbView is the knowledge base as a run sees it: masked, but for the domains that
// it may see raw.
type kbView struct {
	cfg     *Config
	readKey [2]string // domain and key that were read last and are no personal data
	// realKeys are the stored keys of masked ones, by domain; "" where several
	// have one mask.
	realKeys   map[string]map[string]string
	remembered abi.Held    // realKeys
	raws       []rawDomain // that were asked for
}

// A rawDomain is a domain as the bit that lifts its masking.
type rawDomain struct {
	domain, name string
	isRecorded   bool
}

// answers are what a run is told of its calls.
type answers struct {
	cfg     *Config
	values  *redactor
	bounds  *conditions
	out     []byte   // this call's response
	pending []byte   // what response_read has still to give
	held    abi.Held // out, and what pending is of
	failed  error    // why the last call failed, for response_read
	unread  bool     // one of the two is there, or the last answer counts still
	moved   int64    // bytes, of the calls that were not charged for yet
}
