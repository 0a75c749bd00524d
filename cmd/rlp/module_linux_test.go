package main

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// module puts a module at a path.
func module(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The daemon launches a module without a bundle as the client itself would.
//
//rlp:holds D4
func TestTheDaemonLaunchesAModule(t *testing.T) {
	h := inOwnHome(t)
	path := filepath.Join(h.work, "Tiny one.wasm")
	module(t, path, prints)
	for _, allow := range [][]string{nil, {"--allow", "kb:read:notes"}} {
		args := slices.Concat([]string{"launch", path, "--json"}, allow)
		own := start(t, h.env, "rlp", append(args, "--no-daemon")...)
		before, err := h.state()
		if err != nil {
			t.Fatal(err)
		}
		helped := start(t, h.env, "rlp", args...)
		if after, err := h.state(); err != nil || after.Done != before.Done+1 {
			t.Errorf("control: the daemon has not done it: %+v, %v: %s", after, err, helped.stderr)
		}
		got := comparable(t, "daemon", []byte(helped.stdout))
		same(t, "daemon", got, comparable(t, "terminal", []byte(own.stdout)))
		if base, _ := got["base"].([]any); got["agent"] != "tiny_one" || len(base) != len(allow)/2 {
			t.Errorf("%s: %v", allow, got)
		}
	}
}

// Nobody who asks over HTTP or MCP launches a module without a bundle: it says
// nothing of what it may do, and they have no say.
//
//rlp:holds D4
func TestTheServiceLaunchesNoModule(t *testing.T) {
	h := inOwnHome(t)
	dir := (&house{t: t, out: t.TempDir()}).agentOf("child", prints, "kb_read = [\"notes\"]\n")
	if r := start(t, h.env, "rlp", "agent", "install", dir); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	module(t, filepath.Join(h.home, "agents", "bare"), prints)
	s := h.serving(t)
	sent := base64.StdEncoding.EncodeToString([]byte(prints))
	for body, runs := range map[string]bool{
		`{"agent":"child"}`:                                  true,
		`{"agent":"bare"}`:                                   false,
		`{"agent":"bare","allow":["kb:read:notes"]}`:         false,
		`{"bundle":"` + sent + `"}`:                          false,
		`{"bundle":"` + sent + `","allow":["kb:read:*"]}`:    false,
		`{"agent":"child","base":["kb:read:contacts"]}`:      false,
		`{"agent":"child","allow":["kb:read:contacts_raw"]}`: true, // control: it narrows
	} {
		status, text := s.by(t, "", http.MethodPost, "/run", body)
		if (status == http.StatusOK) != runs || (status/100 == 4) == runs || strings.Contains(text, `"hi\n"`) != runs {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}

	way := &mcp.StreamableClientTransport{Endpoint: s.said.Addresses[1] + "/mcp", MaxRetries: -1}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), way, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	for name, runs := range map[string]bool{"child": true, "bare": false} {
		r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
		if ok := err == nil && !r.IsError; ok != runs {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}
