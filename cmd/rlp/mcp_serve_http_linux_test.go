package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bearing sends a token with each request.
type bearing string

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Who asks is looked at in each call, over HTTP by the token that came
// with it: one that is revoked in the middle of a session ends what may be asked.
//
//rlp:holds K71
func TestToolsOverHTTP(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.tooled(t)
	s := h.serving(t)
	made := start(t, h.env, "rlp", "token", "new", "--name", "ci", "--may", "run,read", "--expires", "1d", "-q")
	token := strings.TrimSpace(made.stdout)
	if made.code != 0 || !strings.HasPrefix(token, "rlpt_") {
		t.Fatalf("%+v", made)
	}
	connect := func(token, version string) *mcp.ClientSession {
		t.Helper()
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		way := &mcp.StreamableClientTransport{
			Endpoint:   s.said.Addresses[1] + "/mcp",
			HTTPClient: &http.Client{Transport: bearing(token)}, MaxRetries: -1,
		}
		cs, err := client.Connect(t.Context(), way, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatalf("%v: %s", err, s.stderr)
		}
		t.Cleanup(func() { _ = cs.Close() })
		return cs
	}
	versions := []string{"2026-07-28", "2025-11-25"}
	var sessions []*mcp.ClientSession
	for _, version := range versions {
		for _, who := range []string{"", token} {
			cs := connect(who, version)
			if text, failed := told(t, cs, "plain", input("args")); failed {
				t.Errorf("%s by %q: %s", version, who, text)
			}
			if text, failed := told(t, cs, "probe", input("ls", h.work)); !failed ||
				!strings.Contains(text, "profile:mcp_default") {
				t.Errorf("%s by %q: %s", version, who, text)
			}
			sessions = append(sessions, cs)
		}
	}
	id := strings.Split(token, "_")[1]
	if r := start(t, h.env, "rlp", "token", "revoke", id); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	for i, cs := range sessions {
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "rlp_runs"})
		if revoked := i%2 == 1; (err != nil) != revoked {
			t.Errorf("%s, revoked %v: %v", versions[i/2], revoked, err)
		}
	}
	if r := start(t, h.env, "rlp", "audit", "verify"); r.code != 0 {
		t.Errorf("%+v", r)
	}
}
