package mcpserver_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/serve/mcpserver"
	"runloop.dev/rlp/internal/serve/service"
)

// steers reports whether a letter is one that steers a terminal, or turns the
// direction of what is read.
func steers(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' ||
		r == '\u2029'
}

// plain finds what steers in all that is told as text.
func plain(t *testing.T, what string, r *mcp.CallToolResult) {
	t.Helper()
	for _, c := range r.Content {
		if text := c.(*mcp.TextContent).Text; strings.ContainsFunc(text, steers) {
			t.Errorf("%s: %q", what, text)
		}
	}
}

// Text that models and people read has no letter that steers, whoever wrote it; a
// document is the same with and without them.
func TestTextSteersNothing(t *testing.T) {
	const evil = "\x1b[2J\x1b]0;title\x07\u202eok\u0085\x7f\u2066\u200e\u061c\u2028\ttab\r\nnext\u00a0é"
	b := newBench(t, mcpserver.Options{})
	b.host.install("acme", service.Agent{Name: "printing", Version: "1"})
	cs := b.stdio(t, caller("acme", all), nil)
	r := call(t, cs, "echo", map[string]any{"say": evil, evil: 1})
	plain(t, "a result", r)
	said := false
	for _, c := range r.Content {
		var v, same any
		if json.Unmarshal([]byte(c.(*mcp.TextContent).Text), &v) != nil {
			continue
		}
		if err := json.Unmarshal([]byte(structure(t, r)), &same); err != nil || !reflect.DeepEqual(v, same) ||
			v.(map[string]any)["say"] != evil {
			t.Errorf("%v %#v, and as structure %#v", err, v, same)
		}
		said = true
	}
	if !said {
		t.Errorf("no text is the result: %s", textOf(r))
	}
	r = call(t, cs, "printing", map[string]any{"print": evil})
	plain(t, "what is printed", r)
	has(t, textOf(r), "ok", "\ttab", "\nnext\u00a0é")
	id, _ := r.Meta["runloop.dev/run_id"].(string)
	for name, arguments := range map[string]any{
		"rlp_run": map[string]any{"run_id": id}, "rlp_runs": nil, "rlp_audit": map[string]any{"agent": evil},
		"rlp_kb_search": map[string]any{"domain": evil, "query": evil}, "no " + evil: nil,
	} {
		if r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments}); err == nil {
			plain(t, name, r)
		}
	}
	plain(t, "a refusal", call(t, cs, "rlp_explain", map[string]any{"agent": evil, "capability": evil}))
	plain(t, "an argument", call(t, cs, "rlp_runs", map[string]any{evil: evil}))
}
