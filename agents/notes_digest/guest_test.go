package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/agents/sdk/sdktest"
)

// moduleMax is the largest that the module may be, in bytes: every launch decodes
// and validates it.
const moduleMax = 3 << 20

// The module imports what it calls and nothing else: no reading of the
// knowledge base, no network, no clock of the host.
func TestModuleImports(t *testing.T) {
	module := sdktest.Build(t, ".")
	if len(module) > moduleMax {
		t.Errorf("the module has %d bytes, more than %d", len(module), moduleMax)
	}
	imports, err := sdktest.Imports(module)
	if err != nil {
		t.Fatal(err)
	}
	names := sdktest.Names(imports)
	slices.Sort(names)
	if want := []string{"runloop_v1.kb_put", "runloop_v1.response_read", "runloop_v1.result"}; !slices.Equal(names, want) {
		t.Errorf("imports %v, want %v", names, want)
	}
}

// Without its parameters the program says which it needs; without a host it does
// what it can, and says what it could not.
func TestAsAProgram(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "notes_digest")
	if text, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	cmd := exec.Command(bin)
	cmd.Env = []string{"RLP_PARAM_NOTES=/x"}
	text, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(text), "--param notes=DIR --param out=DIR") {
		t.Errorf("exit %d: %s", cmd.ProcessState.ExitCode(), text)
	}
	out := t.TempDir()
	cmd = exec.Command(bin)
	cmd.Env = []string{"RLP_PARAM_NOTES=/nonexistent", "RLP_PARAM_OUT=" + out}
	text, err := cmd.Output()
	if err != nil || !strings.Contains(string(text), "could not list /nonexistent: does not exist") ||
		!strings.Contains(string(text), "unavailable") {
		t.Errorf("%v: %s", err, text)
	}
	if _, err := os.Stat(filepath.Join(out, "digest.md")); err != nil {
		t.Error(err)
	}
}
