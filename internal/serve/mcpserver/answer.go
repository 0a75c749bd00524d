package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/schema"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// Keys of what is said of a run beside its answer.
const (
	metaRun       = "runloop.dev/run_id"
	metaTrace     = "runloop.dev/trace_id"
	metaOutcome   = "runloop.dev/outcome"
	metaExit      = "runloop.dev/exit_code"
	metaUntrusted = "runloop.dev/untrusted"
	metaDenied    = "runloop.dev/denied"
)

// answer is what came of a run that began. One that was denied something is told
// as an error, for what it gives may be less than what was asked for; not so if
// it was the clock alone, which runtimes of languages ask for unasked.
func answer(state *service.State, r *launcher.Report, t *trail) *mcp.CallToolResult {
	a := &mcp.CallToolResult{Meta: mcp.Meta{
		metaRun: r.RunID, metaTrace: r.TraceID, metaOutcome: string(r.Outcome),
		metaExit: r.ExitCode,
	}}
	if r.Untrusted != nil {
		a.Meta[metaUntrusted] = true
	}
	denied := max(state.Denied, r.Usage.Denied)
	less := denied > t.clock
	well := r.Outcome == launcher.OK && r.ExitCode == launcher.StatusOK
	a.IsError = !well || less
	if !well {
		a.Content = append(a.Content, text(ended(r)))
	}
	if len(t.list) > 0 {
		a.Meta[metaDenied] = t.list
	}
	if less {
		a.Content = append(a.Content, text(t.explained(denied)))
	}
	give(a, r)
	a.Content = append(a.Content, text(fmt.Sprintf("run %s of %s: %s, %d allowed, %d denied; rlp_run shows it", r.RunID,
		r.Agent, r.Outcome, r.Usage.Allowed, denied)))
	return a
}

// give adds what the agent returned, and what it printed last.
func give(a *mcp.CallToolResult, r *launcher.Report) {
	result := bytes.TrimSpace(r.Result)
	some := len(result) > 0 && string(result) != "null"
	switch {
	case some && len(result) > mostResult:
		a.Content = append(a.Content, text(fmt.Sprintf("the result has %d bytes; its beginning is: %s", len(result),
			short(string(result), mostText))))
	case some:
		if same, err := everywhere(result); err != nil {
			a.Content = append(a.Content, text(fmt.Sprintf("the result is told as text alone, for not every reader takes it "+
				"for the same (%s):", oneLine(err.Error()))))
		} else if a.StructuredContent = same; same[0] != '{' { // older clients know objects alone
			a.StructuredContent = map[string]json.RawMessage{"result": same}
		}
		a.Content = append(a.Content, text(short(plainJSON(result), mostText)))
	}
	if out, cut := tail(printable(r.Stdout), mostTail); out != "" {
		what := "it printed:\n"
		if cut {
			what = fmt.Sprintf("it printed %d bytes, the last of them:\n", r.Usage.StdoutBytes)
		}
		a.Content = append(a.Content, text(what+out))
	}
}

// everywhere is a document that every reader takes for the same, in one spelling.
// Clients read whole messages: one in which an agent nests too deep, or writes a
// number or a letter that there is not, ends the session of all others.
func everywhere(result []byte) (json.RawMessage, error) {
	v, err := schema.Decode(result)
	if err != nil {
		return nil, err
	}
	return schema.Encode(v)
}

// ended says how a run ended that did not end well.
func ended(r *launcher.Report) string {
	s := fmt.Sprintf("agent %s ended with %s (exit status %d)", r.Agent, r.Outcome, r.ExitCode)
	if r.Message != "" {
		s += ": " + oneLine(r.Message)
	}
	if last, _ := tail(r.Stderr, mostLine); strings.TrimSpace(last) != "" {
		s += "\nits last words on stderr: " + oneLine(last)
	}
	return short(s, mostText)
}

// explained says of every denial what, why, by which layer, and whose it would be
// to let it.
func (t *trail) explained(denied int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "It was denied %d times what it asked for. Asking again changes nothing; its operator can.\n", denied)
	for _, d := range t.list {
		fmt.Fprintf(&b, "- %s %s (call %s): %s", d.Capability, d.Target, d.Op, d.Reason)
		if d.Layer != "" {
			fmt.Fprintf(&b, ", by the layer %s", d.Layer)
		}
		if d.Times > 1 {
			fmt.Fprintf(&b, ", %d times", d.Times)
		}
		fmt.Fprintf(&b, ". %s (record %d)\n", d.Edit, d.Record)
	}
	if t.more > 0 {
		fmt.Fprintf(&b, "and %d more: rlp_audit with the run_id and decision \"deny\" lists them\n", t.more)
	}
	if len(t.list) == 0 {
		b.WriteString("Its records could not be read in time: rlp_audit with the run_id and decision \"deny\" lists them\n")
	}
	b.WriteString("rlp_explain with the run_id and a record tries the smallest edit.")
	return b.String()
}

// edit says what the operator would edit to let what a layer took.
func edit(agent, reason, layer string) string {
	switch name, rest, _ := strings.Cut(layer, ":"); {
	case reason == caps.Unavailable.String() && layer == "base":
		return "The agent asks for it, and this host does not have it: the operator makes it there (the granted folder or " +
			"file, a lane for programs), or takes the grant away"
	case audit.ByBase(layer, reason):
		return "The agent's own policy.caps does not ask for it, so only its author can change that"
	case name == "token":
		return "The token " + oneLine(rest) + " has a grant of its own: make another one with rlp token new"
	case strings.HasPrefix(layer, "override"):
		return "The operator took it away in caps/overrides/" + agent + ".toml"
	case name == "profile":
		return "The profile " + oneLine(rest) +
			" leaves less; if it is the grant that calls of tools start from, security.run_grant in config.toml names another"
	case layer == caps.ProtectedLayer, layer == caps.HostLayer:
		return "What rlp itself needs is nobody's to give"
	case layer == "":
		return "No layer took it; see the reason"
	}
	return "It is for the operator to widen the layer " + oneLine(layer)
}

// refused is a call that policy refused before anything was executed.
func refused(t *tool, err *service.ViolationError) *mcp.CallToolResult {
	var b strings.Builder
	fmt.Fprintf(&b, "Policy refuses to launch agent %s, and nothing of it was executed. Asking again changes nothing; "+
		"its operator can.\n", t.agent.Name)
	for i, v := range err.Violations {
		if i == mostDenials {
			fmt.Fprintf(&b, "and %d more\n", len(err.Violations)-i)
			break
		}
		fmt.Fprintf(&b, "- %s", short(oneLine(v.Message), 2*mostLine))
		if v.Capability != "" {
			fmt.Fprintf(&b, " (%s, %s, by the layer %s). %s", oneLine(v.Capability), v.Code, oneLine(v.Layer),
				edit(t.agent.Name, v.Code.String(), v.Layer))
		}
		b.WriteByte('\n')
	}
	for _, w := range err.Warnings {
		fmt.Fprintf(&b, "- %s\n", short(oneLine(w), 2*mostLine))
	}
	fmt.Fprintf(&b, "run %s", err.RunID)
	shown := err.Violations[:min(len(err.Violations), mostDenials)]
	return &mcp.CallToolResult{
		IsError: true, Content: []mcp.Content{text(b.String())},
		Meta: mcp.Meta{metaRun: err.RunID, metaTrace: err.TraceID, metaOutcome: string(launcher.Refused)},
		StructuredContent: map[string]any{
			"error": "policy_violation", "run_id": err.RunID, "trace_id": err.TraceID,
			"violations": shown,
		},
	}
}
