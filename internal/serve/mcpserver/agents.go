package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/base/schema"
	"runloop.dev/rlp/internal/serve/service"
)

// Bounds of what an agent says of itself.
const (
	mostSchema      = 64 << 10
	mostDescription = 1 << 10
	mostTools       = 1000 // of a session; the first by name
)

// headerKey is what makes a client send arguments as HTTP headers. No agent
// chooses what is written into those.
const headerKey = `x-mcp-header`

// A tool is an agent as it is offered. It is not changed once it is made.
type tool struct {
	name  string // unlike that of any other tool
	agent service.Agent
	says  string // what differs when the tool is another

	schema  json.RawMessage // as it is shown, of an object
	checks  *schema.Schema  // of the agent's input; nil: any
	inner   bool            // the input is the argument "input", for it is no object
	warning string
}

// agents are those of callers, as tools.
type agents struct {
	host service.Host
	now  func() time.Time
	log  *slog.Logger

	mu    sync.Mutex
	known map[string]*heard // by caller
}

// heard is what the host said a moment ago.
type heard struct {
	at    time.Time
	tools []*tool
}

const (
	heardFor  = time.Second
	mostHeard = 1024 // callers
)

// tools are the agents of c that can be launched, by name.
func (a *agents) tools(ctx context.Context, c *service.Caller) ([]*tool, error) {
	key, now := callerKey(c), a.now()
	a.mu.Lock()
	h := a.known[key]
	a.mu.Unlock()
	if h != nil && now.Sub(h.at).Abs() < heardFor {
		return h.tools, nil
	}
	list, err := a.host.Agents(ctx, c)
	if err != nil {
		return nil, err
	}
	before := map[string]*tool{}
	if h != nil {
		for _, t := range h.tools {
			before[t.name] = t
		}
	}
	made := a.made(list, before)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= mostHeard {
		clear(a.known)
	}
	a.known[key] = &heard{now, made}
	return made, nil
}

func (a *agents) made(list []service.Agent, before map[string]*tool) []*tool {
	names := map[string]bool{}
	for _, agent := range list {
		names[agent.Name] = true
	}
	var made []*tool
	for _, agent := range list {
		if agent.Problem != "" {
			continue
		}
		if len(made) == mostTools {
			a.log.Warn("mcp.too_many_agents", "offered", mostTools)
			break
		}
		t := toolOf(toolName(agent.Name, names), agent)
		old := before[t.name]
		if old != nil && old.says == t.says {
			t = old
		} else if t.warning != "" {
			a.log.Warn("mcp.schema", "agent", agent.Name, "why", t.warning)
		}
		made = append(made, t)
	}
	return made
}

// toolName is the agent's own name, unless that is one of the tools that read.
func toolName(agent string, agents map[string]bool) string {
	_, taken := readers()[agent]
	for name := agent; ; taken = agents[name] {
		if !taken {
			return name
		}
		name = "agent_" + name
	}
}

func toolOf(name string, a service.Agent) *tool {
	t := &tool{name: name, agent: a, schema: json.RawMessage(`{"type":"object"}`)}
	t.says = fmt.Sprintf("%q %q %q %q %t %t %t %s", a.Name, a.Version, a.Description, a.Signature, a.Destructive,
		a.ReadOnly, a.OpenWorld, a.InputSchema)
	if a.InputSchema == nil {
		return t
	}
	if err := t.read(a.InputSchema); err != nil {
		t.schema, t.checks, t.inner = json.RawMessage(`{"type":"object"}`), nil, false
		t.warning = short(oneLine(err.Error()), mostLine)
	}
	return t
}

// read takes in a schema that a stranger wrote.
func (t *tool) read(text []byte) error {
	if len(text) > mostSchema {
		return fmt.Errorf("it has more than %d KiB", mostSchema>>10)
	}
	if bytes.Contains(text, []byte(headerKey)) || bytes.Contains(text, []byte(`\u`)) && strings.Contains(unescaped(text),
		headerKey) {
		return errors.New("it says which arguments go into HTTP headers")
	}
	checks, err := schema.Compile(text, nil)
	if err != nil {
		return err
	}
	v, err := schema.Decode(text)
	if err != nil {
		return err
	}
	t.checks = checks
	object, ok := v.(map[string]any)
	switch {
	case !ok: // true or false
		return nil
	case object["type"] == nil:
		object["type"] = "object"
	case object["type"] != "object":
		t.inner = true
		t.schema, err = schema.Encode(map[string]any{
			"type": "object", "required": []any{"input"}, "additionalProperties": false,
			"properties": map[string]any{"input": map[string]any{"description": "The input of the agent, which is no object: " +
				short(string(text), mostDescription)}},
		})
		return err
	}
	t.schema, err = schema.Encode(object)
	return err
}

// unescaped is JSON with every text in it written plainly.
func unescaped(text []byte) string {
	v, err := schema.Decode(text)
	if err != nil {
		return ""
	}
	p, err := schema.Encode(v)
	if err != nil {
		return ""
	}
	return string(p)
}

// shown is the tool as the protocol has it. What agents say of themselves is
// marked as such.
func (t *tool) shown() *mcp.Tool {
	a := t.agent
	description := short(printable(a.Description), mostDescription)
	if description == "" {
		description = "An agent that says nothing of itself."
	}
	description += fmt.Sprintf("\n(agent %s %s, %s)", a.Name, printable(a.Version), printable(a.Signature))
	if t.warning != "" {
		description += "\n(the schema of its input is not shown: " + t.warning + ")"
	}
	return &mcp.Tool{
		Name: t.name, Title: a.Name, Description: description, InputSchema: t.schema,
		Annotations: &mcp.ToolAnnotations{
			Title: a.Name, ReadOnlyHint: a.ReadOnly, DestructiveHint: &a.Destructive, OpenWorldHint: &a.OpenWorld,
			IdempotentHint: a.ReadOnly && !a.OpenWorld,
		},
	}
}

// input is what the agent is given for the arguments of a call.
func (t *tool) input(arguments json.RawMessage) (json.RawMessage, error) {
	if len(arguments) == 0 || string(bytes.TrimSpace(arguments)) == "null" {
		arguments = json.RawMessage(`{}`)
	}
	v, err := schema.Decode(arguments)
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New(`arguments: give an object, such as {"input": ...}`)
	}
	if t.inner {
		if v, ok = object["input"]; !ok || len(object) != 1 {
			return nil, errors.New(`arguments: give {"input": ...} and nothing else`)
		}
	}
	if t.checks != nil {
		if err := t.checks.Check(v); err != nil {
			return nil, fmt.Errorf("arguments do not fit the schema of %s: %w", t.name, err)
		}
	}
	return schema.Encode(v)
}
