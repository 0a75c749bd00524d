package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/engine/guest/hostiletest"
)

// What is installed is compiled: its first launch finds native code in the cache
// of the tenant that installed it, and that of another bundle (the control) finds
// none. What cannot be compiled is not installed, and says why.
func TestInstallCompiles(t *testing.T) {
	home, bundle := t.TempDir(), bundleOf(t, hostiletest.Nested("blocks", 900))
	rlp := func(want int, args ...string) string {
		t.Helper()
		cmd := self(t, home, args...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
			t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if out := rlp(0, "agent", "install", bundle); !strings.Contains(out, "is installed") {
		t.Errorf("it says %s", out)
	}
	installed := filepath.Join(home, ".runloop", "agents", "bomb")
	if out := rlp(0, "launch", installed, "--json"); !strings.Contains(out, `"compiled": false`) {
		t.Errorf("the first launch of what is installed compiled it: %s", out)
	}
	if out := rlp(0, "launch", "--tenant", "acme", bundle, "--json"); !strings.Contains(out, `"compiled": true`) {
		t.Errorf("control: the first launch of what is not: %s", out)
	}
	wrong := bundleOf(t, []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x05\x01\x03\x00\x1a\x0b"))
	if err := os.RemoveAll(installed); err != nil {
		t.Fatal(err)
	}
	if out := rlp(65, "agent", "install", wrong); !strings.Contains(out, "compiling bomb: module refused") {
		t.Errorf("what drops a value that is not there: %s", out)
	}
	if _, err := os.Stat(installed); err == nil {
		t.Error("it is installed")
	}
}
