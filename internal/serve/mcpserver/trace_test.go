package mcpserver_test

import (
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/serve/mcpserver"
)

// traced sends a traceparent with each request.
type traced struct {
	as
	parent string
}

func (p traced) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", p.parent)
	return p.as.RoundTrip(r)
}

// A call is of the trace that its message says, or else the head of its request;
// what is none begins a trace.
func TestTheTraceOfACall(t *testing.T) {
	const inMessage, inHead, span = "4bf92f3577b34da6a3ce929d0e0e4736", "5bf92f3577b34da6a3ce929d0e0e4737",
		"00f067aa0ba902b7"
	parent := func(trace string) string { return "00-" + trace + "-" + span + "-01" }
	b := newBench(t, mcpserver.Options{})
	url := b.serve(t)
	for _, version := range []string{modern, legacy, ""} {
		for name, c := range map[string]struct {
			message any
			head    string
			want    string // "": a new one
		}{
			"nothing":                {nil, "", ""},
			"in the message":         {parent(inMessage), "", inMessage},
			"in the head":            {nil, parent(inHead), inHead},
			"in both":                {parent(inMessage), parent(inHead), inMessage},
			"wrong in the message":   {"00-x", "", ""},
			"no text in the message": {7, parent(inHead), inHead},
			"wrong in the head":      {nil, "00-x", ""},
		} {
			if version == "" && c.head != "" { // there is none over stdio
				continue
			}
			var cs *mcp.ClientSession
			if version == "" {
				cs = b.stdio(t, caller("acme", all), nil)
			} else {
				var err error
				if cs, err = connect(t, url, traced{as{name: "user:1"}, c.head}, version, nil); err != nil {
					t.Fatal(err)
				}
			}
			p := &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{}}
			if c.message != nil {
				p.Meta = mcp.Meta{"traceparent": c.message}
			}
			r, err := cs.CallTool(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := r.Meta["runloop.dev/trace_id"].(string); len(got) != 32 || c.want != "" && got != c.want ||
				c.want == "" && (got == inMessage || got == inHead) {
				t.Errorf("%s, %s: %q, want %q", version, name, got, c.want)
			}
			if err := cs.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
