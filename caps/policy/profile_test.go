package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// The built-in profiles are the four of the model of grants, and what requests
// start from, as grants describe them: the same set is left, with the same limits.
//
//rlp:holds A26 A30 A32 A34 A35
func TestBuiltinProfiles(t *testing.T) {
	want := []string{
		"_delegate", "_untrusted", "local_minimal", "mcp_default", "operator_full", "runner_default",
		"sandbox_compute_and_store", "sandbox_network_restricted",
	}
	if got := policy.BuiltinProfiles(); !slices.Equal(got, want) {
		t.Fatalf("%v", got)
	}
	b := base(t, broad)
	for name, text := range map[string]string{
		"local_minimal": `{"allowed_adapters":["core"],"forbidden_effects":["io","io-read","io-write"],
			"forbidden_privilege_tiers":["local_state","network","operator_sensitive"],"limits":{"max_steps":500,"max_depth":10,"max_adapter_calls":0,"max_time_ms":5000}}`,
		"sandbox_compute_and_store": `{"allowed_adapters":["core","sqlite","fs","wasm","memory","cache"],"forbidden_adapters":["http","agent","tools"],
			"forbidden_privilege_tiers":["network","operator_sensitive"],"limits":{"max_steps":5000,"max_depth":50,"max_adapter_calls":500,"max_time_ms":30000}}`,
		"sandbox_network_restricted": `{"allowed_adapters":["core","sqlite","fs","wasm","memory","cache","http","tools"],"forbidden_adapters":["agent"],
			"forbidden_privilege_tiers":["operator_sensitive"],"limits":{"max_steps":5000,"max_depth":50,"max_adapter_calls":500,"max_time_ms":30000}}`,
		"runner_default": `{"allowed_adapters":["core"],"limits":{"max_steps":2000,"max_depth":20,"max_adapter_calls":200,"max_time_ms":30000}}`,
		"mcp_default":    `{"allowed_adapters":["core"],"forbidden_privilege_tiers":["local_state","network","operator_sensitive"],"limits":{"max_steps":500,"max_depth":10,"max_adapter_calls":50,"max_time_ms":5000}}`,
		"operator_full":  `{"allowed_adapters":"operator_defined","limits":{"max_steps":50000,"max_depth":200,"max_adapter_calls":5000,"max_time_ms":300000}}`,
	} {
		p, findings, err := policy.LoadProfile(name, filepath.Join(t.TempDir(), name+".toml"), options)
		if p == nil || err != nil || len(findings) > 0 {
			t.Fatalf("%s: %v %v", name, findings, err)
		}
		if p.Source != policy.Builtin || p.Layer.Name != "profile:"+name || p.SchemaVersion != "1.0" || p.Description == "" ||
			p.IntendedUse == "" || len(p.Expectations) == 0 {
			t.Errorf("%s: %+v", name, p.About)
		}
		ours, _ := narrow(t, b, p.Layer)
		theirs, _ := narrow(t, b, grant(t, text))
		if ours.Digest() != theirs.Digest() || ours.Limits() != theirs.Limits() {
			t.Errorf("%s leaves %s %v, the grant %s %v", name, ours, ours.Limits().Map(), theirs, theirs.Limits().Map())
		}
	}
	if p, findings, err := policy.LoadProfile("nobody", filepath.Join(t.TempDir(), "nobody.toml"), options); p != nil ||
		findings != nil || err != nil {
		t.Errorf("a profile that there is not: %v %v %v", p, findings, err)
	}
	if _, _, err := policy.LoadProfile("../x", "/srv/x.toml", options); err == nil {
		t.Error("a path is a profile's name")
	}
}

// What a document says of itself, and what it expects of others, changes no
// decision.
//
//rlp:holds A27 A34
func TestWordsNarrowNothing(t *testing.T) {
	const text = "[deny]\ntiers = [\"network\"]\n"
	plain := profile(t, "p", text)
	about := profile(t, "p", "schema_version = \"1.0\"\nname = \"p\"\ndescription = \"gives everything\"\nintended_use "+
		"= \"all\"\norchestrator_expectations = [\"allow net\"]\n"+text)
	b := base(t, broad)
	one, _ := narrow(t, b, plain)
	two, _ := narrow(t, b, about)
	if one.Digest() != two.Digest() {
		t.Errorf("%s and %s", one, two)
	}
}

// The home's file takes the place of a built-in profile; one that is not as it
// must be is an error, and the built-in one does not stand in for it.
//
//rlp:holds A33
func TestProfilesAreReplaced(t *testing.T) {
	file := func(text string, mode os.FileMode) string {
		dir := t.TempDir()
		if err := errors.Join(os.Chmod(dir, 0o700), os.WriteFile(filepath.Join(dir, "local_minimal.toml"), []byte(text),
			0o600), os.Chmod(filepath.Join(dir, "local_minimal.toml"), mode)); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "local_minimal.toml")
	}
	own := file("[deny]\ntiers = [\"network\"]\n", 0o600)
	p, findings, err := policy.LoadProfile("local_minimal", own, options)
	if p == nil || err != nil || len(findings) > 0 || p.Source != own || string(p.Data) == "" {
		t.Fatalf("%v %v %v", p, findings, err)
	}
	if set, _ := narrow(t, base(t, broad), p.Layer); left(set) != "fs time kb_read kb_write secrets exec env mcp agents" {
		t.Errorf("%s is left", left(set))
	}
	for name, path := range map[string]string{"malformed": file("[denny]\n", 0o600), "empty": file("", 0o600)} {
		if p, findings, err := policy.LoadProfile("local_minimal", path, options); p != nil || err != nil ||
			!policy.HasErrors(findings) {
			t.Errorf("%s: %v %v %v", name, p, findings, err)
		}
	}
	if p, _, err := policy.LoadProfile("local_minimal", file("[deny]\ntiers = []\n", 0o622), options); p != nil ||
		err == nil {
		t.Errorf("a file that others may write: %v %v", p, err)
	}
}

// The example of a profile loads: two categories are kept, three tools denied by
// their names with a category, and no word is said of MCP servers.
func TestProfileExample(t *testing.T) {
	const name = "read-only-researcher"
	data, err := os.ReadFile("../../testdata/profiles/" + name + ".toml")
	if err != nil {
		t.Fatal(err)
	}
	p, findings := policy.ParseProfile(name, name+".toml", data, options)
	if p == nil || len(findings) > 0 || p.Description != "Read and reason; no writes, delegation, or execution." {
		t.Fatalf("%+v %v", p, findings)
	}
	if got := denied(t, p.Layer); got != "" {
		t.Errorf("the axes of families are narrowed: %s", got)
	}
	const all = "path_open net_http kb_get kb_put exec_run agent_launch mcp_call clock_time_get"
	if got := calls(t, all, p.Layer); got != "path_open net_http" {
		t.Errorf("%s may be called", got)
	}
	seen := strings.Replace(string(data), "[visible]\ncategories = [\"file\", \"web\"]\n", "", 1)
	if got := calls(t, all, profile(t, name, seen)); got != "path_open net_http kb_get mcp_call clock_time_get" {
		t.Errorf("without categories %s may be called", got)
	}
}

// A floor that is chosen by name denies as a profile does; it blames no input.
func TestFloorAsProfile(t *testing.T) {
	p, findings, err := policy.LoadProfile(policy.Untrusted, filepath.Join(t.TempDir(), "_untrusted.toml"), options)
	if p == nil || err != nil || len(findings) > 0 || p.Layer.Because != 0 || denied(t, p.Layer) != floorDenies {
		t.Fatalf("%+v %v %v", p, findings, err)
	}
	if built := policy.BuiltinFloor(policy.Untrusted); built.Because != caps.UntrustedContext {
		t.Errorf("the floor itself is changed: %s", built.Because)
	}
}
