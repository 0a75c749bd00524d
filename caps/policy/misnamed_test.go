package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/caps/policy"
)

func TestMisnamed(t *testing.T) {
	for name, want := range map[string]bool{
		"probe.toml": false, "other.toml": false, "probe-2.toml": false, ".probe.0123.previous": false, "probe.toml~": false,
		"probe.toml.bak": false,
		"probe.toml ":    true, " probe.toml": true, "probe .toml": true, "probe.toml\u00a0": true, "probe.toml\u200b": true,
		"probe.yaml": true, "probe.yml": true, "probe.json": true, "probe.caps": true, "probe.conf": true, "probe": true,
		"probe.toml.txt": true,
		"Probe.toml":     true, "probe.TOML": true, "probe.toml\u200b ": true, "\u200b probe.yaml": true, "PROBE.YAML": true,
		"probe.tml": true,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		got, right, err := policy.Misnamed(dir, "_default", "probe")
		if err != nil || (got == name) != want || !want && got != "" || want && right != "probe.toml" {
			t.Errorf("%q: %q, %q, %v", name, got, right, err)
		}
	}
	if got, _, err := policy.Misnamed(filepath.Join(t.TempDir(), "none"), "probe"); got != "" || err == nil {
		t.Errorf("no folder: %q, %v", got, err)
	}
}

// An override with - for _, or with what people call the one of all agents, is
// found, unless it is another agent's or the right one lies beside it.
func TestMisnamedOverride(t *testing.T) {
	isAgent := func(name string) bool { return name == "web-fetch" }
	for _, c := range []struct{ agent, files, want, right string }{
		{"notes_digest", "notes-digest.toml", "notes-digest.toml", "notes_digest.toml"},
		{"notes-digest", "notes_digest.yaml", "notes_digest.yaml", "notes-digest.toml"},
		{"probe", "_defaults.toml", "_defaults.toml", "_default.toml"},
		{"probe", "default.toml", "default.toml", "_default.toml"},
		{"probe", "Defaults.toml", "Defaults.toml", "_default.toml"},
		{"probe", "_default.toml _defaults.toml", "_defaults.toml", "_default.toml"},
		{"probe", "_default.toml default.toml", "", ""}, // of an agent called default
		{"default", "default.toml", "", ""},
		{"notes_digest", "notes_digest.toml notes-digest.toml", "", ""},
		{"web_fetch", "web-fetch.toml", "", ""}, // an agent of that name is installed
		{"probe", "probes.toml other.toml _default.toml .toml.toml", "", ""},
		{"probe", "probe.yaml", "probe.yaml", "probe.toml"},
	} {
		dir := t.TempDir()
		for name := range strings.FieldsSeq(c.files) {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, right, err := policy.MisnamedOverride(dir, c.agent, isAgent); err != nil || got != c.want ||
			right != c.right {
			t.Errorf("%s beside %s: %q, %q, %v", c.agent, c.files, got, right, err)
		}
	}
}

// readOnlyResearcher is the example of a capability profile in the other system,
// as it stands there.
const readOnlyResearcher = `# .reyn/capability_profiles/read-only-researcher.yaml
name: read-only-researcher
description: "Read and reason; no writes, delegation, or execution."
categories:            # keep visible
  - file
  - web
mcp_allow: null        # all MCP servers available
mcp_deny: []
tool_allow: null       # deny-list only
tool_deny:
  - exec__sandboxed_exec
  - memory_operation__remember_shared
  - multi_agent__delegate
`

// A profile in YAML is refused by the name of its file, never passed over, and
// so is its text under the name of a profile.
func TestAProfileInYAMLIsRefusedByName(t *testing.T) {
	const name = "read-only-researcher"
	dir := t.TempDir()
	file := filepath.Join(dir, name+".toml")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if p, _, err := policy.LoadProfile(name, file, options); p != nil || err != nil {
		t.Fatalf("control: no file: %v, %v", p, err)
	}
	write(filepath.Join(dir, name+".yaml"), readOnlyResearcher)
	p, _, err := policy.LoadProfile(name, file, options)
	if p != nil || err == nil || !strings.Contains(err.Error(), name+".yaml is not read") || !strings.Contains(err.Error(),
		name+".toml") {
		t.Errorf("%v, %v", p, err)
	}
	write(file, readOnlyResearcher)
	p, findings, err := policy.LoadProfile(name, file, options)
	if p != nil || err != nil || !policy.HasErrors(findings) || findings[0].Line != 2 {
		t.Errorf("%v, %v, %v", p, findings, err)
	}

	for _, floor := range []string{policy.Untrusted, policy.Delegate} {
		write(filepath.Join(dir, floor+".yaml"), "tool_deny: []\n")
		layer, warning := policy.Floor(floor, filepath.Join(dir, floor+".toml"), options)
		if !strings.Contains(warning, floor+".yaml is not read") || denied(t, layer) != floorDenies {
			t.Errorf("%s: %q, %v", floor, warning, layer)
		}
	}
	write(filepath.Join(dir, "operator_full.yml"), "tool_deny: []\n")
	if p, _, err := policy.LoadProfile("operator_full", filepath.Join(dir, "operator_full.toml"), options); p != nil ||
		err == nil {
		t.Errorf("a built-in profile hides the file that was to replace it: %v, %v", p, err)
	}
}
