package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

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

// Build makes the module of a source folder, as its manifest says or as the Go
// program that it is, and a bundle of it there. A program is taken as it lies there,
// or made by [build].
func Build(ctx context.Context, r *compose.Reader, dir string, self func() (string, error)) (*Built, error) {
	if err := r.OwnPaths(dir); err != nil {
		return nil, err
	}
	m, err := bundles.SourceManifest(dir)
	if err != nil {
		return nil, compose.InputErr(err)
	}
	var entry []byte
	switch {
	case m.OfMachine():
	case m.Build != nil:
		entry, err = byCommand(ctx, r.Env, dir, m.Build)
	case m.Program:
		if entry, err = readModule(dir, m.Entry.Path); err != nil {
			err = compose.InputErr(fmt.Errorf("%s: entry_program: %w", m.Entry.Pos, err))
		}
	default:
		entry, err = goProgram(ctx, r.Env, dir)
	}
	if err != nil {
		return nil, err
	}
	if m.Program {
		return bundle(dir, entry)
	}
	return around(dir, entry, self)
}

// around makes the bundle of a source folder around its module.
func around(dir string, wasm []byte, self func() (string, error)) (*Built, error) {
	if err := run.CheckModule(dir, wasm, self); err != nil {
		return nil, compose.InputErr(err)
	}
	return bundle(dir, wasm)
}

// bundle makes the bundle of a source folder.
func bundle(dir string, entry []byte) (*Built, error) {
	out, err := bundles.Build(dir, entry)
	if err != nil {
		return nil, compose.InputErr(err)
	}
	b, err := bundles.Open(out)
	if err != nil {
		return nil, compose.InputErr(fmt.Errorf("opening what was built: %w", err))
	}
	return &Built{b.Manifest.Agent.String(), out, b.Digest, len(entry), b.Manifest.Version}, nil
}

// byCommand runs the command of [build], if there is one, and reads its output.
func byCommand(ctx context.Context, env []string, dir string, b *bundles.BuildStep) ([]byte, error) {
	if len(b.Command) > 0 {
		cmd := exec.CommandContext(ctx, b.Command[0], b.Command[1:]...)
		cmd.Env = env
		if err := compile(cmd, dir, b.Pos.String()+": "); err != nil {
			return nil, err
		}
	}
	wasm, err := readModule(dir, b.Output)
	if errors.Is(err, os.ErrNotExist) {
		what := "the command of [build] made no such file; write the name of what it makes"
		if len(b.Command) == 0 {
			what = `there is no such file; copy the module there, or write command = [...] that makes it`
		}
		return nil, compose.InputErr(fmt.Errorf("%s: [build] output %q: %s", b.Pos, b.Output, what))
	}
	if err != nil {
		return nil, compose.InputErr(fmt.Errorf("%s: [build] output: %w", b.Pos, err))
	}
	return wasm, nil
}

// readModule reads a regular file of a folder.
func readModule(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	name = filepath.FromSlash(name)
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > bundles.MaxTotal {
		return nil, fmt.Errorf("%s is no file of at most %d MiB", name, bundles.MaxTotal>>20)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, bundles.MaxTotal))
}

// goProgram compiles the Go program of a folder.
func goProgram(ctx context.Context, env []string, dir string) ([]byte, error) {
	if files, err := filepath.Glob(filepath.Join(dir, "*.go")); err != nil || len(files) == 0 {
		return nil, compose.InputErr(notGo(dir))
	}
	tmp, err := os.MkdirTemp("", "rlp-build-")
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", dir, err)
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "agent.wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	cmd.Env = append(append([]string{}, env...), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if err := compile(cmd, dir, ""); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// notGo says what to write in the manifest of a folder without a Go program.
func notGo(dir string) error {
	command, output := `["make"]`, "agent.wasm"
	for pattern, other := range map[string][2]string{
		"*.c":        {`["clang", "--target=wasm32-wasi", "--sysroot=/usr", "-O2", "-o", "agent.wasm", "main.c"]`, output},
		"Cargo.toml": {`["cargo", "build", "--release", "--target=wasm32-wasip1"]`, "target/wasm32-wasip1/release/agent.wasm"},
	} {
		if files, err := filepath.Glob(filepath.Join(dir, pattern)); err == nil && len(files) > 0 {
			command, output = other[0], other[1]
		}
	}
	return fmt.Errorf("%s: no [build] is there, and no Go file beside it that would be built without one; write how the "+
		"module is made:\n[build]\ncommand = %s\noutput = %q", filepath.Join(dir, bundles.ManifestName), command, output)
}

// compile runs a compiler in a folder; where says which line names it.
func compile(cmd *exec.Cmd, dir, where string) error {
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second // for what it started, once it is ended
	text, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if _, missing := errors.AsType[*exec.Error](err); missing {
		return &compose.Error{
			Status: run.StatusUnavailable,
			Err:    fmt.Errorf("%sbuilding %s: the command %s is needed and not there: %w", where, dir, cmd.Args[0], err),
		}
	}
	return compose.InputErr(fmt.Errorf("%sbuilding %s: %s: %w\n%s", where, dir, strings.Join(cmd.Args, " "), err,
		strings.TrimSpace(string(text))))
}
