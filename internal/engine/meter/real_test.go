package meter_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"runloop.dev/rlp/internal/engine/meter"
)

// kernels are what the guests can compute.
var kernels = []string{"sieve", "fib", "matmul", "sha256", "json", "sort", "strings", "fill"}

// goGuest builds a package as a guest.
func goGuest(t testing.TB, pkg string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building a Go guest: %v\n%s", err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// cGuest builds the C guest, as far as there is a compiler for it.
func cGuest(t testing.TB) (wasm []byte, ok bool) {
	t.Helper()
	if _, err := exec.LookPath("clang"); err != nil {
		return nil, false
	}
	out := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.CommandContext(t.Context(), "clang", "--target=wasm32-wasi", "--sysroot=/usr", "-O2", "-Wl,--strip-debug",
		"-o", out, "testdata/c/kernels.c")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Logf("no C guest: %v\n%s", err, text)
		return nil, false
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm, true
}

// program is a guest with a system interface that is the same in each run:
// its clock stands still unless asked, its randomness is not random.
type program struct {
	rt       wazero.Runtime
	compiled wazero.CompiledModule
	fuel     *meter.Fuel
}

// ended is how a run went.
type ended struct {
	out, err string
	left     int64 // of the budget, if it was metered
}

func newProgram(t testing.TB, cfg wazero.RuntimeConfig, wasm []byte) *program {
	t.Helper()
	p := &program{rt: newRuntime(t, cfg), fuel: &meter.Fuel{}}
	wasi_snapshot_preview1.MustInstantiate(t.Context(), p.rt)
	serve(t, p.rt, p.fuel)
	var err error
	if p.compiled, err = p.rt.CompileModule(t.Context(), wasm); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *program) run(t testing.TB, fuel *meter.Fuel, args ...string) ended {
	t.Helper()
	*p.fuel = *fuel
	var out bytes.Buffer
	cfg := wazero.NewModuleConfig().WithName("").WithArgs(append([]string{"guest"},
		args...)...).WithStdout(&out).WithStderr(&out).WithStartFunctions()
	mod, err := p.rt.InstantiateModule(t.Context(), p.compiled, cfg)
	if err != nil {
		return ended{out.String(), outcome(err), 0}
	}
	defer mod.Close(context.Background())
	_, err = mod.ExportedFunction("_start").Call(t.Context())
	if exit := (*sys.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 0 {
		err = nil
	}
	e := ended{out: out.String(), err: outcome(err)}
	if counter, ok := mod.ExportedGlobal(meter.CounterName).(api.MutableGlobal); ok {
		e.left = p.fuel.Left(int64(counter.Get()))
	}
	return e
}

// The agents of this project are valid rewritten.
func TestAgents(t *testing.T) {
	rt := newRuntime(t, features(wazero.NewRuntimeConfigInterpreter()))
	agents := []string{"notes_digest", "repo_janitor"}
	for _, agent := range agents[:size(2, 1, 2)] {
		if valid, refused := sameValidity(t, rt, goGuest(t, "../../../agents/"+agent)); !valid || refused {
			t.Errorf("%s: valid %v, refused %v", agent, valid, refused)
		}
	}
}
