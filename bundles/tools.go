package bundles

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// The bounds of tools.json.
const (
	MaxTools      = 128
	MaxToolsBytes = 1 << 20
	MaxToolWords  = 256 // in each list and table of a tool, but for its schemas
)

// A Tool is one entry of tools.json: what the agent may have the host do for it
// beside its own calls, and all that this takes. It grants nothing: what it
// needs and the run does not hold is not attached.
type Tool struct {
	ID          string
	Description string
	Pos         tomlfile.Pos

	Exec *ToolProgram // one of the two
	HTTP *ToolRequest

	Input, Result json.RawMessage // JSON Schemas; nil: anything
	Schemas       []string        // files of the bundle that the two refer to

	// Capabilities are what the entry declares. The list must be there, and may
	// be empty: then the tool needs what its transport needs, and nothing else.
	Capabilities []caps.Entry
	// Placed are those of the capabilities whose path the operator gives.
	Placed  []ToolPlaced
	Secrets []string
	Budget  ToolBudget
	Confirm bool // a person is asked before each call
	Tags    []string
}

// A ToolProgram is a program with fixed arguments. It reads the arguments of
// the call as JSON on stdin and prints the result.
type ToolProgram struct {
	Command string // absolute
	Args    []string
	Env     []ToolField
	Timeout time.Duration // 0: the host's own
	Pos     tomlfile.Pos  // of the command
}

// A ToolRequest is one HTTP request. The arguments of the call are its body, or
// its query for a method that has none.
type ToolRequest struct {
	Method, URL string
	Scheme      string // of the URL: "https" or "http"
	Host        string // canonical host:port
	Headers     []ToolField
	Timeout     time.Duration
	Pos         tomlfile.Pos // of the URL
}

// A ToolPlaced is a capability "fs:read:{name}": the path is that of the manifest's
// param of this name.
type ToolPlaced struct {
	Domain string // "fs:read:"
	Param  string
	Pos    tomlfile.Pos
}

// A ToolField is a header or a variable. Where the value has {secret:ID} in it,
// the host puts the secret there.
type ToolField struct {
	Name, Value string
	Secrets     []string // in the order of the value
}

// A ToolBudget is what all calls of a tool in one run may cost together;
// negative: no bound.
type ToolBudget struct{ Tokens, MicroUSD int64 }

// secretMark begins the place of a secret in a header or variable.
const secretMark = "{secret:"

// paramMark begins the place of a param in an argument.
const paramMark = "{param:"

// ParamMark is what stands for the param name in an argument of a program.
func ParamMark(name string) string { return paramMark + name + "}" }

// Params are the params that the tool names, each once.
func (t *Tool) Params() []string {
	var names []string
	for _, p := range t.Placed {
		names = append(names, p.Param)
	}
	if t.Exec != nil {
		for _, arg := range t.Exec.Args {
			names = append(names, marked(arg, paramMark)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// marked are the names that stand behind mark in text; a mark that does not end
// stands for all that follows.
func marked(text, mark string) []string {
	var names []string
	for {
		_, after, found := strings.Cut(text, mark)
		if !found {
			return names
		}
		name, rest, _ := strings.Cut(after, "}")
		names = append(names, name)
		text = rest
	}
}

// SecretMark is what stands for the secret id in the value of a [ToolField].
func SecretMark(id string) string { return secretMark + id + "}" }

// Fields are the headers or variables of a tool.
func (t *Tool) Fields() []ToolField {
	if t.Exec != nil {
		return t.Exec.Env
	}
	return t.HTTP.Headers
}

// Implied are what the transport needs beside what the entry declares: the
// variables and the secrets that are put in, and last the program or the
// request itself. Each has its own word for the same thing, so that a layer
// that takes it away takes the tool away.
func (t *Tool) Implied() []caps.Entry {
	var list []caps.Entry
	need := func(f caps.Family, modes caps.ModeSet, scope string, pos tomlfile.Pos) {
		list = append(list, caps.Entry{Grant: caps.Grant{Family: f, Modes: modes, Scope: scope}, Pos: caps.Pos(pos)})
	}
	if t.Exec != nil {
		for _, v := range t.Exec.Env {
			need(caps.Env, 1, v.Name, t.Exec.Pos)
		}
		for _, id := range t.Secrets {
			need(caps.Secrets, caps.Modes(caps.Get, caps.Use), id, t.Exec.Pos)
		}
		need(caps.Exec, 1, t.Exec.Command, t.Exec.Pos)
		return list
	}
	for _, id := range t.Secrets {
		need(caps.Secrets, caps.Modes(caps.Get, caps.Use), id+"@"+t.HTTP.Host, t.HTTP.Pos)
	}
	mode, _ := caps.NetMode(t.HTTP.Scheme, t.HTTP.Method)
	need(caps.Net, caps.Modes(mode), t.HTTP.Host, t.HTTP.Pos)
	return list
}
