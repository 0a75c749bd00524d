package hostcalls

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

const execRunName = "exec_run"

var execRun = define(execRunName, 2, caps.Exec, execCall)

// execCall is how a program is judged and started, for whoever asks: exec_run,
// and the attached tools that are programs.
var execCall = gated[execReq]{
	decode:  decodeExec,
	resolve: resolveExec,
	touches: func(r execReq) (caps.Request, string) {
		return caps.Request{Family: caps.Exec, Name: r.program.File}, r.program.File
	},
	asked:   func(r execReq) string { return r.asked },
	payload: func(r execReq) [][]byte { return [][]byte{bytesOf(r.text), bytesOf(r.stdin)} },
	budget: func(h *Host, _ execReq) (caps.Code, bool) {
		switch {
		case h.cfg.Exec == nil:
			return caps.Unavailable, true
		case !h.budget.Allows(caps.ExecSpawns, 1) || h.none(caps.ExecTimeoutMS):
			return caps.BudgetExhausted, true
		}
		return 0, false
	},
	confirm: func(h *Host, r execReq) (Question, bool) {
		if !h.cfg.ConfirmExternal {
			return Question{}, false
		}
		return Question{Tool: execRunName, Target: r.commandLine(), Arguments: r.stdin}, true
	},
	done: true, framed: true,
	do: func(ctx context.Context, h *Host, p gate.Permit, r execReq) ([]byte, error) {
		e, err := h.runProgram(ctx, p, &r)
		if err != nil {
			return nil, err
		}
		return h.ended(e)
	},
}

// resolveExec finds what would be started, before it is judged. A file that
// the agent could have written, or a link that it could have moved, is nothing
// that a policy can have meant.
func resolveExec(h *Host, r *execReq) (caps.Code, string) {
	// Where nothing was ever granted nothing is looked at. What a run has lost
	// since is refused by its own name, as what took it away.
	if h.cfg.Exec == nil || !h.exec.atLaunch.Any(caps.Exec) {
		return 0, ""
	}
	p, err := h.cfg.Exec.Find(r.asked)
	if errors.Is(err, ErrNoPrograms) {
		return caps.ProgramNotPermitted,
			"nothing is started from /proc, /sys and /dev, nor from rlp's home; name the program by its own path"
	}
	if err != nil {
		r.missing = err // told to who may start it, and to nobody else
		return 0, ""
	}
	r.program = p
	if p.Name == "" {
		return caps.ProgramNotPermitted,
			"the policy grants this file by another name, and a program may do what its name says; " +
				"grant the name that is called, or call the one that is granted"
	}
	for _, path := range p.Via {
		if h.exec.mayChange(path) {
			return caps.ProgramNotPermitted, "the agent may write " + path +
				", so that it is no program but the agent's own code; " +
				"take it out of fs_rw, or have the program elsewhere"
		}
	}
	return 0, ""
}

// runProgram starts what was permitted.
func (h *Host) runProgram(ctx context.Context, p gate.Permit, r *execReq) (*Ended, error) {
	if !p.OK() {
		return nil, errDenied
	}
	if r.missing != nil {
		return nil, r.missing
	}
	if err := h.takeInFiles(r); err != nil {
		return nil, err
	}
	holds, err := r.given(h.cfg.Gate.Set())
	if err != nil {
		return nil, err
	}
	x := execution{h, r, holds}
	env, err := x.environment(ctx)
	if err != nil {
		return nil, err
	}
	argv := slices.Clone(r.argv)
	argv[0] = r.program.Name
	h.budget.Take(caps.ExecSpawns, 1)
	e, err := h.cfg.Exec.Run(ctx, &Command{
		File: r.program.File, Argv: argv, Env: env, Dir: r.dir, Stdin: bytesOf(r.stdin),
		Timeout:   x.whileLeased(h.timeLeft(caps.ExecTimeoutMS, r.timeout)),
		MaxOutput: MaxExecOutput + maxSecret, Holds: holds,
	})
	if err == nil {
		err = h.takeInOutput(r)
	}
	return e, err
}

// An execution is a program that is about to be started, with what it gets of the
// run's files.
type execution struct {
	h     *Host
	req   *execReq
	holds caps.Set
}

// whileLeased is d, or what is left of it until a lease of files ends: a program
// keeps the folders that it was given.
func (x *execution) whileLeased(d time.Duration) time.Duration {
	left := x.holds.Ending(caps.FS) - x.h.cfg.Now()/int64(time.Millisecond)
	return max(time.Millisecond, min(d, time.Duration(min(left, int64(d/time.Millisecond)))*time.Millisecond))
}

// environment is the part of it that the request names: each name passes the gate,
// and each value is looked through for handles.
func (x *execution) environment(ctx context.Context) ([]string, error) {
	op := x.req.op
	if op == nil {
		var err error
		if op, err = x.h.cfg.Gate.Op(execRunName); err != nil {
			return nil, err
		}
	}
	env := make([]string, 0, len(x.req.env))
	for _, v := range x.req.env {
		ask := caps.Request{Family: caps.Env, Name: v.name}
		if _, err := x.h.cfg.permit(op, ask, v.name, nil); err != nil {
			return nil, err
		}
		if why := x.variable(v); why != "" {
			return nil, x.h.cfg.refuse(op, ask, v.name, caps.ProgramNotPermitted, "env."+v.name+": "+why)
		}
	}
	for _, v := range x.req.env {
		value, err := x.h.cfg.fill(op, v.value, Destination{Program: x.req.program.File})
		if err != nil {
			return nil, err
		}
		if strings.IndexByte(value, 0) >= 0 {
			return nil, &Fail{Errno: Inval, Hint: "env." + v.name + ": the secret has a NUL in it"}
		}
		env = append(env, v.name+"="+value)
	}
	return env, nil
}

// ended is the response: a head's length, the head, both streams, without this
// run's secrets.
func (d *redactor) ended(e *Ended) ([]byte, error) {
	stdout, cutOut := d.output(e.Stdout, e.StdoutCut, e.StdoutMax)
	stderr, cutErr := d.output(e.Stderr, e.StderrCut, e.StderrMax)
	head, err := json.Marshal(struct {
		ExitCode    int  `json:"exit_code"`
		TimedOut    bool `json:"timed_out"`
		StdoutBytes int  `json:"stdout_bytes"`
		StderrBytes int  `json:"stderr_bytes"`
		StdoutCut   bool `json:"stdout_truncated,omitempty"`
		StderrCut   bool `json:"stderr_truncated,omitempty"`
		OutOfMemory bool `json:"out_of_memory,omitempty"`
	}{e.ExitCode, e.TimedOut, len(stdout), len(stderr), cutOut, cutErr, e.OutOfMemory})
	if err != nil {
		return nil, fmt.Errorf("answering: %w", err)
	}
	out := make([]byte, 0, 4+len(head)+len(stdout)+len(stderr))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(head)))
	return append(append(append(out, head...), stdout...), stderr...), nil
}
