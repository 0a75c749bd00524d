package connect

import "runloop.dev/rlp/caps"

// What records call executing a file, and the tool that layers can hide.
const (
	execName = "execve"
	execTool = "exec:" + execName
)

// MayExecute reports whether a set leaves a program any file to execute: the tool by
// which layers know that.
func MayExecute(set caps.Set) bool {
	return set.Check(caps.Request{Family: caps.Tool, Name: execTool}).Allow
}

// Executes decides about each file that one run's program executes beside itself, by
// its gate. kept says that the sandbox keeps it from the program, whatever is granted.
// Any goroutine may call it.
func Executes(cfg Config) (func(file string, kept bool) bool, error) {
	cfg.Lock.Lock()
	defer cfg.Lock.Unlock()
	op, err := cfg.Gate.OpAs(execName, caps.AuditName(caps.Exec, 0), execTool)
	if err != nil {
		return nil, err
	}
	return func(file string, kept bool) bool {
		if !caps.IsName(caps.Exec, file) { // no policy names it, nor any record
			return !kept
		}
		cfg.Lock.Lock()
		defer cfg.Lock.Unlock()
		ask := caps.Request{Family: caps.Exec, Name: file}
		switch {
		case !cfg.Budget.Allows(caps.ExecSpawns, 1):
			cfg.Gate.Refuse(op, ask, file, caps.BudgetExhausted)
			return false
		case kept:
			cfg.Gate.Refuse(op, ask, file, caps.ProgramNotPermitted)
			return false
		}
		allowed := cfg.Gate.Admit(op, ask, file, nil).OK()
		if allowed {
			cfg.Budget.Take(caps.ExecSpawns, 1)
		}
		return allowed
	}, nil
}
