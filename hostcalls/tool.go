package hostcalls

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/environ"
	"runloop.dev/rlp/internal/effect/web"
)

// ToolServer is the server by whose name a guest calls the tools that its bundle
// attaches: mcp_call {"server": "tools", "tool": ..., "arguments": ...}. No MCP
// server can be called so.
const ToolServer = "tools"

// MaxToolResult bounds what a tool may answer, in bytes: all of it is read before
// any is passed on.
const MaxToolResult = 4 << 20

// Check refuses a tool that could never be called, for what no policy can grant.
func (t *Tool) Check() error {
	if t.Program != nil {
		for _, f := range t.Program.Env {
			if environ.Steers(f.Name) {
				return fmt.Errorf("env.%s: decides what code a program runs, and is never taken from a tool", f.Name)
			}
		}
		return nil
	}
	r, err := t.request("")
	if err != nil {
		return err
	}
	if by := r.claim().Other(); by != "" {
		return fmt.Errorf("%s; write it as method", by)
	}
	return nil
}

// Own is the program or the request itself, as the gate is asked for it.
func (t *Tool) Own() caps.Request {
	if t.Program != nil {
		return caps.Request{Family: caps.Exec, Name: cmp.Or(t.Program.File, t.Program.Command)}
	}
	r, err := t.request("")
	if err != nil {
		return caps.Request{Family: caps.Net}
	}
	return caps.Request{Family: caps.Net, Mode: r.mode, Name: r.Host}
}

// All is everything that a call of the tool asks for.
func (t *Tool) All() []caps.Request { return append(slices.Concat(t.Needs, t.Later), t.Own()) }

// Scope is the tool's on the axis of tools.
func (t *Tool) Scope() string { return ToolServer + ":" + t.ID }

// request is what is sent, with query added to the URL and without secrets.
func (t *Tool) request(query string) (httpReq, error) {
	raw := t.Request.URL
	if query != "" {
		sep := "?"
		if strings.Contains(raw, sep) {
			sep = "&"
		}
		raw += sep + query
	}
	r := httpReq{method: t.Request.Method, timeout: t.Request.Timeout}
	if r.timeout == 0 {
		r.timeout = defaultTimeout
	}
	var err error
	if r.Place, err = web.Parse(raw); err != nil {
		return r, fmt.Errorf("url: %w", err)
	}
	var ok bool
	if r.mode, ok = caps.NetMode(r.Scheme, r.method); !ok {
		return r, fmt.Errorf("method: %q cannot be sent", r.method)
	}
	for _, f := range t.Request.Headers {
		name := textproto.CanonicalMIMEHeaderKey(f.Name)
		if err := web.CheckHeader(name, texts(f)); err != nil {
			return r, fmt.Errorf("headers.%s: %w", f.Name, err)
		}
		r.header = append(r.header, httpField{name: name})
	}
	return r, nil
}

func texts(f ToolField) []string {
	list := make([]string, 0, len(f.Parts))
	for _, p := range f.Parts {
		list = append(list, p.Text)
	}
	return list
}

// nameTools gives each tool its place in the records.
func (h *Host) nameTools(op *gate.Op) error {
	if h.tools != nil {
		return nil
	}
	tools := make([]*attachedTool, 0, len(h.cfg.Tools))
	for i := range h.cfg.Tools {
		t := &attachedTool{Tool: &h.cfg.Tools[i]}
		var err error
		if t.op, err = h.cfg.Gate.ToolOp(op, t.Scope(), t.ID); err != nil {
			return fmt.Errorf("naming the tool %s: %w", t.ID, err)
		}
		tools = append(tools, t)
	}
	h.tools = tools
	return nil
}

// listAttached are the tools that a call would reach: what is listed is what is
// allowed.
func (h *Host) listAttached() ([]byte, error) {
	if !h.cfg.Gate.Spend() {
		return nil, errSpent
	}
	visible := []MCPTool{}
	for _, t := range h.tools {
		if h.reaches(t) {
			visible = append(visible, MCPTool{Name: t.ID, Description: t.Description, InputSchema: t.InputSchema})
		}
	}
	return toolList(visible)
}

func toolList(tools []MCPTool) ([]byte, error) {
	return json.Marshal(struct {
		Tools []MCPTool `json:"tools"`
	}{tools})
}

// reaches reports whether the gate would let a call of t pass now.
func (h *Host) reaches(t *attachedTool) bool {
	_, missing := Missing(h.cfg.Gate.Set(), t.Tool)
	return !missing
}

// Missing is the first of what t needs that set does not hold, and whether there
// is any: why a tool is not attached. The tool's own name is among it.
func Missing(set caps.Set, t *Tool) (Denied, bool) {
	for _, r := range append(slices.Clone(t.Needs), t.Own()) {
		if d := set.CheckTree(r); !d.Allow {
			return Denied{r, d}, true
		}
	}
	for _, r := range t.Later {
		if d := set.Check(r); !d.Allow {
			return Denied{r, d}, true
		}
	}
	hidden := caps.Request{Family: caps.Tool, Name: t.Scope()}
	d := set.Check(hidden)
	return Denied{hidden, d}, !d.Allow
}

// Denied is a request and why it is not allowed.
type Denied struct {
	Request  caps.Request
	Decision caps.Decision
}

// ofTool is a refusal that says for which tool it was needed.
func ofTool(t *attachedTool, err error) error {
	if r, ok := err.(*refused); ok {
		r.tool = t.ID
	}
	return err
}
