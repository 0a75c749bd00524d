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

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/abi"
)

// ImportModule is the name under which guests import these functions.
const ImportModule = "runloop_v1"

// A KBEntry is one key of a domain, as kb_list shows it.
type KBEntry struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
	Size     int    `json:"size"`
}

// KB is what the kb calls need of a knowledge base. Implementations are bound
// to one tenant: no method takes a tenant, so none can name another's. Errors
// that a guest should see are a [*Fail]; any other is answered as io.
type KB interface {
	Get(ctx context.Context, domain, key string) ([]byte, error)
	Put(ctx context.Context, domain, key string, value []byte) (revision uint64, err error)
	// CAS writes only if the stored revision is this one (0: absent).
	CAS(ctx context.Context, domain, key string, value []byte, revision uint64) (uint64, error)
	Delete(ctx context.Context, domain, key string) error
	List(ctx context.Context, domain, prefix string) ([]KBEntry, error)
}

// Config is what one run's imports work with.
type Config struct {
	Gate *gate.Gate
	KB   KB
	// Now is the time in nanoseconds since 1970, for time_now.
	Now func() int64
	// Log receives what the guest logs.
	Log func(level, message string)
	// KBWriteBytes is limits.kb_write_bytes; negative means no limit.
	KBWriteBytes int64
}

// A Host answers the imports of one run. It is used by the goroutine that runs
// the guest.
type Host struct {
	cfg     Config
	result  []byte
	written int64 // bytes put into the knowledge base

	in      []byte // this call's arguments, copied from the guest once
	out     []byte // this call's response
	pending []byte // what response_read has still to give
	failed  error  // why the last call failed, for response_read
}

// New makes the imports of a run.
func New(cfg Config) *Host { return &Host{cfg: cfg} }

// Result is the JSON that the guest gave to result, nil if it gave none.
func (h *Host) Result() []byte { return h.result }

// Funcs is the table of imports, ready to be linked.
func (h *Host) Funcs() ([]abi.Func, error) {
	funcs := []abi.Func{h.responseRead()}
	for _, d := range all {
		op, err := h.cfg.Gate.Op(d.name)
		if err != nil {
			return nil, fmt.Errorf("linking %s: %w", d.name, err)
		}
		funcs = append(funcs, d.link(h, op))
	}
	return funcs, nil
}

// Signatures is the table without anything behind it, for checking what a
// module imports.
func Signatures() []abi.Func {
	funcs := []abi.Func{(&Host{}).responseRead()}
	for _, d := range all {
		funcs = append(funcs, abi.Func{Module: ImportModule, Name: d.name, Params: d.params(), Results: []abi.Type{abi.I64}})
	}
	return funcs
}

// all is the table, in the order of the contract.
var all = []def{
	netHTTP, kbGet, kbPut, kbCAS, kbDelete, kbList, kbSearch, secretHandle, modelComplete, modelEmbed,
	execRun, mcpCall, agentLaunch, turnNext, timeNow, logMessage, setResult,
}

// An Import is one line of the table, for lint, inspect and the docs.
type Import struct {
	Name  string
	Gated bool
	// Family is what the import needs; meaningless unless Gated.
	Family caps.Family
}

// Imports lists what a guest may import from runloop_v1.
func Imports() []Import {
	list := []Import{{Name: "response_read"}}
	for _, d := range all {
		list = append(list, Import{Name: d.name, Gated: d.gated, Family: d.family})
	}
	return list
}
