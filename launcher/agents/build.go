package agents

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// A Built is a bundle that was made of source.
type Built struct {
	Agent        string `json:"agent"`
	Bundle       string `json:"bundle"`
	BundleDigest string `json:"bundle_digest"`
	WasmBytes    int    `json:"wasm_bytes"`
	Version      string `json:"-"`
}

// Build compiles the Go program in a folder and makes a bundle of it there.
func Build(ctx context.Context, r *compose.Reader, dir string, self func() (string, error)) (*Built, error) {
	if err := r.OwnPaths(dir); err != nil {
		return nil, err
	}
	wasm, err := compileSource(ctx, r.Env, dir)
	if err != nil {
		return nil, err
	}
	if err := run.CheckModule(dir, wasm, self); err != nil {
		return nil, inputErr(err)
	}
	out, err := bundles.Build(dir, wasm)
	if err != nil {
		return nil, inputErr(err)
	}
	b, err := bundles.Open(out)
	if err != nil {
		return nil, inputErr(fmt.Errorf("opening what was built: %w", err))
	}
	return &Built{b.Manifest.Agent.String(), out, b.Digest, len(wasm), b.Manifest.Version}, nil
}

// compileSource runs the Go toolchain on the source folder.
func compileSource(ctx context.Context, env []string, dir string) ([]byte, error) {
	if _, err := os.Stat(filepath.Join(dir, "manifest.toml")); err != nil {
		return nil, inputErr(fmt.Errorf("building %s: no manifest.toml there: %w", dir, err))
	}
	tmp, err := os.MkdirTemp("", "rlp-build-")
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", dir, err)
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "agent.wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(append([]string{}, env...), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		if _, missing := err.(*exec.Error); missing {
			return nil, &compose.Error{
				Status: run.StatusUnavailable,
				Err:    fmt.Errorf("building %s: the go command is needed and not there: %w", dir, err),
			}
		}
		return nil, inputErr(fmt.Errorf("building %s: go build: %w\n%s", dir, err, strings.TrimSpace(string(text))))
	}
	return os.ReadFile(out)
}
