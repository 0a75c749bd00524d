package sdk

import (
	"encoding/json"
	"time"
	"unsafe"
)

// An ExecRequest is one program to run. An environment value may be a secret's
// handle.
type ExecRequest struct {
	Argv    []string          // Argv[0] is an absolute path of the host
	Env     map[string]string // each name is a capability of its own: env:read:NAME
	Dir     string            // in the working folder that the host makes; "": that folder
	Stdin   []byte
	Timeout time.Duration // 0: the host's own; to the millisecond
}

// An ExecResult is how a program ended.
type ExecResult struct {
	ExitCode       int  // 128 and the signal's number, where one ended it
	TimedOut       bool // the host ended it: its time was over
	Stdout, Stderr []byte
	// StdoutCut and StderrCut say that there was more than the host keeps.
	StdoutCut, StderrCut bool
}

// ExecRun runs a program to its end. An exit code other than 0 is a result, not
// an error. The capability is process:exec:<program>.
func ExecRun(req ExecRequest) (ExecResult, error) {
	text, err := json.Marshal(struct {
		Argv    []string          `json:"argv"`
		Env     map[string]string `json:"env,omitempty"`
		Dir     string            `json:"cwd,omitempty"`
		Timeout int64             `json:"timeout_ms,omitempty"`
	}{req.Argv, req.Env, req.Dir, req.Timeout.Milliseconds()})
	if err != nil {
		return ExecResult{}, err
	}
	response, err := call("exec_run", nil, func(out unsafe.Pointer, room uint32) int64 {
		return execRun(view(text), view(req.Stdin), out, room)
	})
	if err != nil {
		return ExecResult{}, err
	}
	head, body, err := unframe("exec_run", response)
	if err != nil {
		return ExecResult{}, err
	}
	var h struct {
		ExitCode int    `json:"exit_code"`
		TimedOut bool   `json:"timed_out"`
		Stdout   uint64 `json:"stdout_bytes"`
		Stderr   uint64 `json:"stderr_bytes"`
		OutCut   bool   `json:"stdout_truncated"`
		ErrCut   bool   `json:"stderr_truncated"`
	}
	if err := json.Unmarshal(head, &h); err != nil {
		return ExecResult{}, malformed("exec_run", err.Error())
	}
	if size := uint64(len(body)); h.Stdout > size || h.Stderr != size-h.Stdout {
		return ExecResult{}, malformed("exec_run", "lengths that do not match the output")
	}
	return ExecResult{
		ExitCode: h.ExitCode, TimedOut: h.TimedOut,
		Stdout: body[:h.Stdout:h.Stdout], Stderr: body[h.Stdout:], StdoutCut: h.OutCut, StderrCut: h.ErrCut,
	}, nil
}

// MCPCall calls a tool of a configured MCP server with arguments as JSON (nil:
// none) and returns its result as JSON: content, structuredContent and isError.
// Without a tool the result is the list of those that the run sees. The
// capability is mcp:call:server; what a server says marks the run as holding
// content from outside.
func MCPCall(server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	var result json.RawMessage
	err := callJSON("mcp_call", mcpCall, struct {
		Server    string          `json:"server"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
	}{server, tool, arguments}, &result)
	return result, err
}

// A LaunchRequest asks for a run of another agent. It never has more than the
// one that launches it: Allow, Deny and Limits only narrow.
type LaunchRequest struct {
	Agent  string           `json:"agent"`
	Input  json.RawMessage  `json:"input,omitempty"`
	Allow  []string         `json:"allow,omitempty"` // capability strings
	Deny   []string         `json:"deny,omitempty"`
	Limits map[string]int64 `json:"limits,omitempty"` // such as wall_time_ms
}

// A LaunchReport is how a run that was launched ended.
type LaunchReport struct {
	RunID    string          `json:"run_id"`
	Agent    string          `json:"agent"`
	Outcome  string          `json:"outcome"` // "ok", "exit", "timeout", "refused", ...
	ExitCode int             `json:"exit_code"`
	Result   json.RawMessage `json:"result"`
	Stdout   string          `json:"stdout"`
	Stderr   string          `json:"stderr"`
}

// AgentLaunch runs another agent to its end. An outcome other than "ok" is a
// report, not an error. The capability is agents:launch:agent.
func AgentLaunch(req LaunchRequest) (LaunchReport, error) {
	var r LaunchReport
	err := callJSON("agent_launch", agentLaunch, req, &r)
	return r, err
}
