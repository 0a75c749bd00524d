package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// forAll is what tests share: what takes a second of two processors, or a minute
// from a cold cache, is done once and only read afterwards.
var forAll struct {
	dir string // until the last test has ended

	probe, programs once
	compiled        sync.Map // of each tenant, a *once
}

// A once is a file or a folder that is made when it is first asked for.
type once struct {
	mu   sync.Mutex
	path string
}

// get makes it in a folder of its own, by what returns the path.
func (o *once) get(t *testing.T, do func(dir string) (string, error)) string {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.path != "" {
		return o.path
	}
	dir, err := os.MkdirTemp(forAll.dir, "")
	if err != nil {
		t.Fatal(err)
	}
	path, err := do(dir)
	if err != nil {
		t.Fatal(err)
	}
	o.path = path
	return path
}

// tests are all of this package's, with a folder for what they share.
type tests struct{ *testing.M }

// Run implements testscript's TestingM.
func (m tests) Run() int {
	dir, err := os.MkdirTemp("", "rlp-tests-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	forAll.dir = dir
	return m.M.Run()
}

// buildProbe compiles the tests' agent.
func buildProbe(t *testing.T) string {
	t.Helper()
	return forAll.probe.get(t, func(dir string) (string, error) {
		out := filepath.Join(dir, "probe.wasm")
		cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", out, "./testdata/probe")
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building the probe: %w\n%s", err, text)
		}
		return out, nil
	})
}

// compiledProbe is a cache in which the probe is compiled. It is copied by [warm]
// and nobody's home.
func compiledProbe(t *testing.T, probe string) string {
	t.Helper()
	return compiledFor(t, probe, "default")
}

// compiledFor is such a cache of a tenant's: nobody takes what another compiled.
func compiledFor(t *testing.T, probe, tenant string) string {
	t.Helper()
	made, _ := forAll.compiled.LoadOrStore(tenant, new(once))
	return made.(*once).get(t, func(home string) (string, error) {
		wasm, err := os.ReadFile(probe)
		if err != nil {
			return "", err
		}
		if out, err := self(t, home, "launch", bundleOf(t, wasm), "--tenant", tenant).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w\n%s", err, out)
		}
		if tenant == "default" {
			return filepath.Join(home, ".runloop", "cache"), nil
		}
		return filepath.Join(home, ".runloop", "tenants", tenant, "cache"), nil
	})
}
