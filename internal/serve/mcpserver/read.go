package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/base/schema"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/ask"
)

// A reader is a tool that shows what there is and changes nothing.
type reader struct {
	description string
	schema      string // of the arguments beside tenant
	required    string
	may         service.Rights // all of them are needed; none: nobody may
	read        func(ss *session, ctx context.Context, c *service.Caller, arguments []byte) (any, error)
}

const (
	runField   = `"run_id":{"type":"string","description":"the id of a run, or the beginning or the end of one"}`
	agentField = `"agent":{"type":"string","description":"the name of an agent"}`
)

// readers are the tools that read, by name.
func readers() map[string]reader {
	return map[string]reader{
		"rlp_runs": {
			"Runs of agents, the newest first: under way and ended.",
			agentField + `,"state":{"type":"string","enum":["queued","running","done","refused","failed"]},"limit":{"type":"integer","minimum":1,"maximum":100},` +
				`"before":{"type":"string","description":"only runs before the one of this id"}`,
			``, service.Read, (*session).readRuns,
		},
		"rlp_run": {
			"One run: how it ended, what it was denied, the beginning of its result and the end of what it printed.",
			runField, `"run_id"`, service.Read, (*session).readRun,
		},
		"rlp_audit": {
			"Decisions and events of the audit log, the last that suit, oldest first. Long texts are cut.",
			runField + `,` + agentField + `,"capability":{"type":"string","description":"such as fs or fs.read; decisions alone"},` +
				`"decision":{"type":"string","enum":["allow","deny"]},"after":{"type":"integer","minimum":0,"description":"only records behind this seq"},` +
				`"limit":{"type":"integer","minimum":1,"maximum":200}`,
			``, service.Read, (*session).readAudit,
		},
		"rlp_kb_search": {
			"Search a domain of the knowledge base. Answers are snippets with personal data masked; what is not labelled " +
				"trusted came from outside.",
			`"domain":{"type":"string"},"query":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":20}`,
			`"domain","query"`, service.Read, (*session).readKB,
		},
		"rlp_explain": {
			"Why something was or would be denied: every layer's vote, and the smallest edit of the operator's that would " +
				"change it. " +
				"Give a run_id and the number of a record of it that is a decision; or a run_id, or an agent, and a capability " +
				"such as kb:write:drafts.",
			runField + `,"record":{"type":"integer","minimum":1},` + agentField + `,"capability":{"type":"string"}`,
			``, service.Read, (*session).readExplain,
		},
	}
}

// offerReading adds the tools that read, to who may.
func (ss *session) offerReading() {
	no := false
	for name, r := range readers() {
		if !ss.caller.Load().Can(r.may) {
			continue
		}
		fields := r.schema + `,"tenant":{"type":"string","description":"need not be given; no other than your own is answered"}`
		t := &mcp.Tool{
			Name: name, Description: r.description,
			InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` + fields +
				`},"required":[` + r.required + `]}`),
			Annotations: &mcp.ToolAnnotations{
				ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no,
				OpenWorldHint: &no,
			},
		}
		ss.sdk.AddTool(t, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return ss.reading(ctx, &r, req.Params.Arguments), nil
		})
	}
}

// reading answers a call of a tool that reads.
func (ss *session) reading(ctx context.Context, r *reader, arguments []byte) *mcp.CallToolResult {
	c, err := ss.who()
	if err == nil && !c.Can(r.may) {
		err = service.ErrForbidden
	}
	if err != nil {
		return said(err)
	}
	ctx, done, err := ss.begin(ctx, c)
	if err != nil {
		return said(err)
	}
	defer done()
	if arguments, err = ownTenant(c, arguments); err != nil {
		return said(err)
	}
	v, err := r.read(ss, ctx, c, arguments)
	if err != nil {
		return ss.notRead(c, err)
	}
	a, err := document(v)
	if err != nil {
		return said(err)
	}
	return a
}

// ownTenant refuses arguments that name another tenant, and takes the name out.
func ownTenant(c *service.Caller, arguments []byte) ([]byte, error) {
	if len(arguments) == 0 || string(bytes.TrimSpace(arguments)) == "null" {
		return []byte(`{}`), nil
	}
	v, err := schema.Decode(arguments)
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("arguments: give an object")
	}
	if t, there := object["tenant"]; there && t != c.Tenant {
		return nil, errors.New("tenant: you are answered of your own tenant alone; leave it out")
	}
	delete(object, "tenant")
	return schema.Encode(object)
}

// arguments reads arguments into what knows all that there are.
func arguments[T any](p []byte) (a T, err error) {
	if err := strictjson.Unmarshal(p, &a); err != nil {
		return a, strictjson.Under("arguments", err)
	}
	return a, nil
}

// notRead is a question that has no answer. What it is about is told; what went
// wrong in this host, its log is.
func (ss *session) notRead(c *service.Caller, err error) *mcp.CallToolResult {
	var fault *ask.Error
	var wrong *argumentError
	var away *service.UnavailableError
	switch {
	case errors.As(err, &fault):
		return said(errors.New(oneLine(fault.Error())))
	case errors.As(err, &wrong), errors.As(err, &away), errors.Is(err, service.ErrNotFound),
		errors.Is(err, service.ErrForbidden), errors.Is(err, context.Canceled):
		return said(err)
	}
	ss.of.opt.Log.Error("mcp.read", "tenant", c.Tenant, "caller", c.Name, "message", oneLine(err.Error()))
	return said(errors.New("the answer could not be read; the log of this host says why"))
}

// An argumentError is an argument that is not understood.
type argumentError struct{ what string }

func (e *argumentError) Error() string { return e.what }

func wrongf(format string, args ...any) error { return &argumentError{fmt.Sprintf(format, args...)} }
