package service

import "encoding/json"

// A Door is where a request came in. Each has a grant of its own that requests
// start from while the operator names none.
type Door string

const (
	// HTTP is POST /run, the console and rlp launch --remote.
	HTTP Door = "http"
	// MCP is a tool call.
	MCP Door = "mcp"
)

// A Request is a run that a caller asks for. Exactly one of Agent, Bundle and
// Reference is set.
type Request struct {
	Door Door

	Agent     string // the name of an installed one
	Bundle    []byte // an archive
	Reference string // oci://host/repo:tag

	// Input is the agent's stdin as a JSON value: a string where the agent takes text,
	// one of base64 where it takes bytes; nil: none. InputBytes are the bytes
	// themselves, whatever it takes. At most one of the two is set.
	Input      json.RawMessage
	InputBytes []byte
	Args       []string

	// Grant is what narrows in the form of [policy.ParseGrant], an object with
	// allowed_adapters, the forbidden_ lists, limits and adapter_constraints.
	Grant json.RawMessage
	// Override is the text of an override in TOML.
	Override string
	Profiles []string
	// Allow and Deny are capability strings.
	Allow, Deny []string

	// Params fill placeholders with paths of this host: they take Operate.
	Params map[string]string
	Seed   *uint64

	// TraceID is that of the trace which asks, 32 hex digits; "": the run begins one.
	TraceID string
	// ParentSpan is the span of that trace which asks, 16 hex digits, or "".
	ParentSpan string
	// Turns says that the run takes further inputs: see [Service.Send].
	Turns bool
}
