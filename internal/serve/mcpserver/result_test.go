package mcpserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/serve/mcpserver"
	"runloop.dev/rlp/internal/serve/service"
)

// A result that readers of JSON do not all take, or not all for the same, ends no
// session: it is told as text, and what follows is answered as before.
func TestOddResultsEndNoSession(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	b.host.install("acme", service.Agent{Name: "says"})
	cs := b.stdio(t, caller("acme", all), nil)
	for name, says := range map[string]string{
		"deep":       strings.Repeat("[", 2000) + strings.Repeat("]", 2000),
		"number":     `{"a":1e400}`,
		"exponent":   `1e999999`,
		"half":       `{"a":"\ud800"}`,
		"twice":      `{"a":1,"a":2}`,
		"deep twice": strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100),
	} {
		b.host.says = json.RawMessage(says)
		r := call(t, cs, "says", nil)
		if r.StructuredContent != nil || r.IsError {
			t.Errorf("%s: %s, error %v", name, structure(t, r), r.IsError)
		}
		has(t, textOf(r), "told as text alone", says[:min(len(says), 100)])
	}
	for says, want := range map[string]string{
		`{"b":[1.50,"é"],"a":null}`: `{"a":null,"b":[1.5,"é"]}`,
	} {
		b.host.says = json.RawMessage(says)
		if got := structure(t, call(t, cs, "says", nil)); got != want {
			t.Errorf("%s: %s", says, got)
		}
	}
	r := call(t, cs, "says", nil)
	shown := structure(t, call(t, cs, "rlp_run", map[string]any{"run_id": r.Meta["runloop.dev/run_id"]}))
	id, _ := r.Meta["runloop.dev/run_id"].(string)
	for _, part := range []string{id[len(id)-8:], "…" + id[len(id)-8:], id[:35]} { // as other pages print it
		if got := structure(t, call(t, cs, "rlp_run", map[string]any{"run_id": part})); got != shown {
			t.Errorf("%s: %s", part, got)
		}
	}
	none := call(t, cs, "rlp_run", map[string]any{"run_id": "ffff0000"})
	has(t, textOf(none), "there is no such run")
	for _, printed := range []string{textOf(r), shown} {
		if !strings.Contains(printed, "[2J") || strings.Contains(printed, "\x1b") || strings.Contains(printed, `\u001b`) ||
			strings.Contains(printed, "\u202e") {
			t.Errorf("printed is %q", printed)
		}
	}
}
