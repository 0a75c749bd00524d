// Package hostcalls is the import module runloop_v1: what a guest may ask of
// the host beside WASI. Each import is defined once, by [define]: how its
// arguments are decoded, what it would touch, and what it does once the gate
// has permitted it. A call that skips the gate cannot be written into the table.
//
// The package knows neither the engine nor the store: it works on a view of
// guest memory and on the interfaces below.
package hostcalls

import (
	"context"
	"fmt"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/record/audit"
)

// ImportModule is the name under which guests import these functions.
const ImportModule = "runloop_v1"

// A KBEntry is one key of a domain, as kb_list shows it.
type KBEntry struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
	Size     int    `json:"size"`
	Trusted  bool   `json:"-"` // as of a [KBValue]
}

// A KBValue is a stored value and what its store knows of it.
type KBValue struct {
	Bytes []byte
	// Plain says that the value is its own masked form. In doubt it is not.
	Plain bool
	// Trusted says that the operator wrote it, or a run that had taken in nothing
	// untrusted. In doubt it does not.
	Trusted bool
}

// A KBChange is what becomes of the value at a key.
type KBChange struct {
	Domain, Key string
	Value       []byte
	// Because is the untrusted input that the run had taken in before, "" for
	// none. The store keeps it with the value, and says to whoever reads that
	// whether it is to be trusted.
	Because string
}

// KB is what the kb calls need of a knowledge base. Implementations are bound
// to one tenant: no method takes a tenant, so none can name another's. Errors
// that a guest should see are a [*Fail]; any other is answered as io.
type KB interface {
	Get(ctx context.Context, domain, key string) (KBValue, error)
	Put(ctx context.Context, c KBChange) (revision uint64, err error)
	// CAS writes only if the stored revision is this one (0: absent).
	CAS(ctx context.Context, c KBChange, revision uint64) (uint64, error)
	Delete(ctx context.Context, c KBChange) error
	List(ctx context.Context, domain, prefix string) ([]KBEntry, error)
	// Search returns the values that suit a text best.
	Search(ctx context.Context, q KBQuery) ([]KBHit, error)
}

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
	// ConfirmExternal has it asked before everything that changes something outside:
	// attached tools, programs, tools of servers, requests that are no mere reading.
	ConfirmExternal bool
	Agents          Agents
}

// Config is what one run's imports work with.
type Config struct {
	Components
	Gate *gate.Gate
	// Sources say which inputs mark the run.
	Sources Sources
	// Now is the time in nanoseconds since 1970, for time_now.
	Now func() int64
	// Log receives what the guest logs.
	Log func(level, message string)
	// Warn receives what the operator should know though the run goes on; nil:
	// nobody does.
	Warn func(message string)
	// Failed receives why a call failed in the host, for its log alone; nil: nobody
	// does.
	Failed func(op, why string)
	// Replaced is told that a value of the secret id was taken out of what the
	// import passed to or from the guest; nil: nobody is.
	Replaced func(id, op string)
	// Turns are the run's; nil: it has one.
	Turns Turns
	// Limits are the run's; the families enforce those that are theirs.
	Limits caps.Limits
	// Left says what is left of time and fuel to a call that is under way; nil:
	// nothing that is known.
	Left Left
	// Above is the budget of the run that launched this one; nil: nobody did.
	Above *Budget
}

// A Host answers the imports of one run. It is used by the goroutine that runs
// the guest.
type Host struct {
	cfg      Config
	result   []byte
	budget   *Budget
	children []Child
	net      netState
	remark   string      // what the record of this call's end should say beside "ok"
	unmetBy  string      // the condition that this call does not meet
	done     audit.Event // the record of the last call's end; here, so that making one allocates nothing
	exec     execState
	mcpOps   map[string]*gate.Op // of tools of servers, by scope
	tools    []*attachedTool     // nil before the first is asked for
	consent  string              // what the record of this call's end says of it
	readKey  [2]string           // domain and key that were read last and are no personal data
	// realKeys are the stored keys of masked ones, by domain; "" where several
	// have one mask.
	realKeys map[string]map[string]string
	raws     []rawDomain // that were asked for
	calling  string      // the import that is being answered, where there are secrets

	out     []byte              // this call's response
	pending []byte              // what response_read has still to give
	failed  error               // why the last call failed, for response_read
	unread  bool                // one of the two is there, or the last answer counts still
	bound   map[string][]string // the secrets that the base binds to a host, by host
	moved   int64               // bytes, of the calls that were not charged for yet

	others uint64 // calls of imports whose repeated calls may be answered otherwise, from 1

	answered   abi.Held // out, and what pending is of
	returned   abi.Held // result
	remembered abi.Held // realKeys
}

// New makes the imports of a run.
func New(cfg Config) *Host {
	return &Host{cfg: cfg, budget: NewBudget(cfg.Limits, cfg.Above), others: 1}
}

// Result is the JSON that the guest gave to result, nil if it gave none.
func (h *Host) Result() []byte {
	h.calling = "result"
	return h.scrubResult(h.result)
}

// Funcs is the table of imports, ready to be linked.
func (h *Host) Funcs() ([]abi.Func, error) {
	funcs := []abi.Func{h.responseRead()}
	h.exec.atLaunch = h.cfg.Gate.Set()
	for _, d := range table(h.cfg.Added) {
		op, err := d.op(h.cfg.Gate)
		if err != nil {
			return nil, fmt.Errorf("linking %s: %w", d.name, err)
		}
		funcs = append(funcs, d.link(h, op))
	}
	return funcs, nil
}

// Signatures is the table without anything behind it, for checking what a
// module imports.
func Signatures(added ...Added) []abi.Func {
	funcs := []abi.Func{(&Host{}).responseRead()}
	for _, d := range table(added) {
		funcs = append(funcs, d.signature())
	}
	return funcs
}

// table is [all] with the functions of the embedding program.
func table(added []Added) []def {
	list := slices.Clone(all)
	for _, a := range added {
		list = append(list, a.def)
	}
	return list
}

// all is the table, in the order of the contract.
var all = []def{
	netHTTP, kbGet, kbPut, kbCAS, kbDelete, kbList, kbSearch, secretHandle, modelComplete, modelEmbed,
	execRun, mcpCall, agentLaunch, turnNext, timeNow, logMessage, setResult,
}

// An Import is one line of the table, for lint, inspect and the docs.
type Import struct {
	Module, Name string
	// Gated says that it needs a capability. Every layer can hide one that does
	// not, but for log, result and response_read.
	Gated bool
	// Family is what the import needs; meaningless unless Gated.
	Family caps.Family
}

// Imports lists what a guest may import from runloop_v1, and from the embedding
// program.
func Imports(added ...Added) []Import {
	list := []Import{{Module: ImportModule, Name: "response_read"}}
	for _, d := range table(added) {
		module, name := d.imported()
		list = append(list, Import{Module: module, Name: name, Gated: d.gated, Family: d.family})
	}
	return list
}
