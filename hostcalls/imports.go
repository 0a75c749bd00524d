package hostcalls

import (
	"fmt"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/internal/engine/abi"
)

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
	funcs := []abi.Func{(&answers{}).responseRead()}
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

// Result is the JSON that the guest gave to result, nil if it gave none.
func (h *Host) Result() []byte {
	h.calling = "result"
	return h.scrubResult(h.result)
}

// New makes the imports of a run.
func New(cfg Config) *Host {
	h := &Host{cfg: cfg, budget: budget.New(cfg.Limits, cfg.Above), others: 1}
	h.redactor.cfg, h.conditions.cfg, h.kbView.cfg = &h.cfg, &h.cfg, &h.cfg
	h.taint = taint{&h.cfg, &h.redactor}
	h.answers = answers{cfg: &h.cfg, values: &h.redactor, bounds: &h.conditions}
	return h
}
