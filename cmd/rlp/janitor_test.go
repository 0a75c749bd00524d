package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The agent repo_janitor looks through real checkouts, with the machine's own
// git and grep, in the lane that auto takes. Its bundle is repo_janitor in each script's
// folder.
func TestRepoJanitor(t *testing.T) {
	t.Parallel()
	// under the race detector its guest compiles for a minute; the script exec_run races the same code
	if testing.Short() {
		return
	}
	source := filepath.Join(repository(t), "agents", "repo_janitor")
	wasm := filepath.Join(t.TempDir(), "repo_janitor.wasm")
	build := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", wasm, ".")
	build.Dir, build.Env = source, append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the agent: %v\n%s", err, text)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/janitor", UpdateScripts: *update, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("RUNLOOP_HOME", "")
			if ns, err := condition("ns"); err != nil || !ns { // no lane enforces anything here
				env.Setenv("RUNLOOP__EXEC__LANE", "native")
			}
			bundle := filepath.Join(env.WorkDir, "repo_janitor")
			if err := os.MkdirAll(filepath.Join(bundle, "bin"), 0o700); err != nil {
				return err
			}
			for from, to := range map[string]string{
				wasm: "bin/repo_janitor.wasm", source + "/manifest.toml": "manifest.toml", source + "/policy.caps": "policy.caps",
			} {
				text, err := os.ReadFile(from)
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(bundle, to), text, 0o600); err != nil {
					return err
				}
			}
			return os.MkdirAll(env.Getenv("HOME"), 0o700)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"status": status, "private": private},
	})
}
