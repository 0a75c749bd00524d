package guest_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/engine/guest/hostiletest"
)

const (
	attackEnv = "RLP_TEST_ATTACKS"

	// hostMost is all the memory that this process may write while it is
	// attacked, the guest's own included.
	hostMost = 768 << 20
)

// limited starts this test again in a process that may write most bytes.
func limited(t *testing.T, most uint64) (inside bool) {
	t.Helper()
	if os.Getenv(attackEnv) != "" {
		if guest.Slack == 1 {
			if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
				t.Fatal(err)
			}
		}
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.short="+map[bool]string{
		true:  "true",
		false: "false",
	}[testing.Short()], "-test.parallel=2", "-test.v")
	cmd.Env = append(os.Environ(), attackEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		lines := slices.DeleteFunc(strings.Split(string(out), "\n"), func(l string) bool {
			return strings.HasPrefix(l, "=== ")
		})
		t.Errorf("%v\n%.8000s", err, strings.Join(lines, "\n"))
	}
	return false
}

// endsOf are the ends of an attack as a run has them.
var endsOf = map[guest.Kind]int{
	guest.OK: hostiletest.OK, guest.Exit: hostiletest.OK, guest.Timeout: hostiletest.Timeout, guest.Fuel: hostiletest.Fuel,
	guest.Memory: hostiletest.Memory, guest.Trap: hostiletest.Trap,
}

// attackBound is less than what is usual, so that many attacks take little time.
func attackBound() guest.Bound {
	if os.Getenv("RLP_SOAK") != "" {
		return guest.Bound{}
	}
	return guest.Bound{Time: 250 * time.Millisecond, Memory: 256 << 20}
}

// Each attack ends as it should, in a process that may have little memory and
// goes on with the next.
//
//rlp:holds K23 K27 K73
func TestAttacks(t *testing.T) {
	if !limited(t, hostMost) {
		return
	}
	cache := newCache(t)
	list := hostiletest.All()
	if testing.Short() {
		list = hostiletest.Runs()
	}
	for _, a := range list {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			sys, err := wasi.New(wasi.Config{Args: []string{"attack"}, Stdout: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			defer sys.Close()
			began := time.Now()
			mod, err := guest.Compile(t.Context(), guest.Config{
				Module: a.Bytes(), Funcs: sys.Funcs(), MemoryBytes: 64 << 20, Compiler: os.Executable, CacheDir: cache,
				Bound: attackBound(),
			})
			if err != nil {
				if a.Ends&hostiletest.Refused == 0 || !errors.Is(err, guest.ErrModule) {
					t.Errorf("%s: %v", a.What, err)
				}
				t.Logf("%s: %s: %v", a.Name, time.Since(began).Round(time.Millisecond), err)
				return
			}
			defer mod.Close()
			end := mod.Run(t.Context(), guest.RunConfig{
				Wall: wallOf(a.Ends&hostiletest.Timeout != 0), Grace: stops,
			})
			if a.Ends&endsOf[end.Kind] == 0 || end.Abandoned || end.PeakMemory > 64<<20 {
				t.Errorf("%s: %+v", a.What, end)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%s: it took %s", a.What, took)
			}
			t.Logf("%s: %s, %s of it as a guest: %s", a.Name, time.Since(began).Round(time.Millisecond),
				end.Wall.Round(time.Millisecond), end.Kind)
		})
	}
	t.Run("after", func(t *testing.T) {
		if got := run(t, module{code: nil}); got.Kind != guest.OK {
			t.Errorf("a healthy guest: %+v", got)
		}
	})
}

const controlEnv = "RLP_TEST_CONTROL"

// The engine alone dies of each claim, and is busy for seconds with what is
// small and nested.
func TestControlTheEngineAloneIsKilled(t *testing.T) {
	if name := os.Getenv(controlEnv); name != "" {
		engineAlone(name)
		return
	}
	if testing.Short() {
		return // without the guard there is nothing to race
	}
	list := slices.DeleteFunc(hostiletest.Claims(), func(a hostiletest.Attack) bool { return !a.Slow })
	for _, a := range append(list, hostiletest.Attack{Name: "bomb_nested_loops_left_60k"}) {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestControlTheEngineAloneIsKilled$")
			cmd.Env = append(os.Environ(), controlEnv+"="+a.Name)
			if err := cmd.Run(); err == nil {
				t.Errorf("the engine withstands it: %s", a.What)
			}
		})
	}
}

// engineAlone compiles an attack in this process, which may have 1 GiB.
func engineAlone(name string) {
	const most = 1 << 30
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		panic(err)
	}
	list := hostiletest.All()
	wasm := list[slices.IndexFunc(list, func(a hostiletest.Attack) bool { return a.Name == name })].Bytes()
	rt := wazero.NewRuntimeWithConfig(context.Background(),
		wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
	_, _ = rt.CompileModule(context.Background(), wasm)
	os.Exit(0)
}

// What is compiled in this process keeps it busy for a moment only.
func TestSmallModulesAreCheap(t *testing.T) {
	if testing.Short() {
		return // it is about time
	}
	for _, a := range hostiletest.Small(1 << 10) {
		began := time.Now()
		n := allocated(func() {
			mod, err := guest.Compile(t.Context(), guest.Config{Module: a.Bytes()}) // without a compiler: here
			if err == nil {
				_ = mod.Close()
			} else if !errors.Is(err, guest.ErrModule) {
				t.Errorf("%s (%s): %v", a.Name, a.What, err)
			}
		})
		if took := time.Since(began); took > 10*time.Second*guest.Slack || n > 128<<20 {
			t.Errorf("%s (%s): %s, %d bytes", a.Name, a.What, took, n)
		}
	}
}
