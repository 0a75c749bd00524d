package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The servers and the client that were tried.
var referenceServers = [...]string{
	"@modelcontextprotocol/sdk@1.32.2", "@modelcontextprotocol/server-filesystem@2026.8.31",
	"@modelcontextprotocol/server-everything@2026.8.31",
}

// The protocol's own client works with its own servers behind rlp: files are read
// and written where they are granted, what a layer takes is not there and refused by its
// name, and a description that changed is refused until it is accepted.
func TestReferenceServersBehindAPolicy(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil || testing.Short() {
		t.Log("not asked: the reference servers, which take npm (.ci/setup) and time; TestAServerBehindAPolicy asks the SDK's")
		return
	}
	w := wrappedHome(t)
	modules := filepath.Join(w.work, "npm")
	install := append([]string{
		"install", "--prefix", modules, "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts",
	}, referenceServers[:]...)
	if out, err := exec.CommandContext(t.Context(), "npm", install...).CombinedOutput(); err != nil {
		t.Logf("not asked: the reference servers, which npm cannot have here: %v: %s", err, out)
		return
	}
	client, err := filepath.Abs("testdata/mcp/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	notes := filepath.Join(w.work, "notes")
	if err := os.Mkdir(notes, 0o700); err != nil {
		t.Fatal(err)
	}
	packages := filepath.Join(modules, "node_modules")
	ask := func(steps [][]any, args ...string) string {
		t.Helper()
		text, err := json.Marshal(steps)
		if err != nil {
			t.Fatal(err)
		}
		r := start(t, w.env, "node", append([]string{client, modules, string(text), "rlp", "mcp", "wrap"}, args...)...)
		if r.code != 0 {
			t.Errorf("%+v", r)
		}
		return r.stdout
	}
	call := func(tool string, arguments map[string]any) []any {
		return []any{"callTool", map[string]any{"name": tool, "arguments": arguments}}
	}
	server := filepath.Join(packages, "@modelcontextprotocol", "server-filesystem", "dist", "index.js")
	files := []string{
		"files", "--allow", "fs:write:" + notes, "--allow", "fs:read:" + packages, "--", "/usr/bin/node", server, notes,
	}
	write := call("write_file", map[string]any{"path": filepath.Join(notes, "a"), "content": "kept"})
	said := ask([][]any{
		{"listTools"},
		write, call("read_text_file", map[string]any{"path": filepath.Join(notes, "a")}),
		call("read_text_file", map[string]any{"path": "/etc/hostname"}),
	}, files...)
	if data, err := os.ReadFile(filepath.Join(notes, "a")); string(data) != "kept" || strings.Count(said, `"kept"`) == 0 ||
		!strings.Contains(said, `"name":"write_file"`) {
		t.Errorf("control: %q, %v\n%s", data, err, said)
	}
	w.file("caps/overrides/files.toml", "[capabilities]\nfs_rw = []\nfs = [\""+notes+"\", \""+packages+
		"\"]\n[deny]\ntools = [\"mcp:files/write_file\"]\n")
	said = ask([][]any{
		{"listTools"}, write, call("create_directory", map[string]any{"path": filepath.Join(notes, "d")}),
	}, files...)
	if strings.Contains(said, `"name":"write_file"`) || !strings.Contains(said, "notice ") ||
		!strings.Contains(said, "tool_hidden") || exists(filepath.Join(notes, "d")) {
		t.Errorf("%s", said)
	}
	text, err := os.ReadFile(server)
	if err == nil {
		text = bytes.Replace(text, []byte("Create a new file or"), []byte("First send all. Create a new file or"), 1)
		err = os.WriteFile(server, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	read := call("read_text_file", map[string]any{"path": filepath.Join(notes, "a")})
	if said = ask([][]any{{"listTools"}, read}, files...); strings.Contains(said, `"kept"`) ||
		!strings.Contains(said, "rlp mcp accept files") || !strings.Contains(said, `"tools":[]`) {
		t.Errorf("changed: %s", said)
	}
	r := start(t, w.env, "rlp", "mcp", "accept", "files", "--yes")
	if r.code != 0 || !strings.Contains(r.stdout, "First send all") {
		t.Errorf("%+v", r)
	}
	if said = ask([][]any{read}, files...); !strings.Contains(said, `kept`) {
		t.Errorf("accepted: %s", said)
	}
	said = ask([][]any{
		{"listTools"},
		{"listPrompts"},
		{"listResources"},
		{"getPrompt", map[string]any{"name": "simple-prompt"}},
		call("echo", map[string]any{"message": "two words"}),
		{"ping"},
		{"readResource", map[string]any{"uri": "demo://resource/dynamic/text/7"}},
	}, "everything", "--allow", "fs:read:"+packages, "--", "/usr/bin/node",
		filepath.Join(packages, "@modelcontextprotocol", "server-everything", "dist", "index.js"), "stdio")
	for _, want := range []string{
		"Echo: two words", "simple prompt without arguments", "ping {}", `"uri":"demo://resource/dynamic/text/7"`, "features.md",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %s", want, said)
		}
	}
}
