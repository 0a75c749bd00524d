package meter_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runloop.dev/rlp/internal/engine/meter"
)

// engines are the two of the engine, as guests run in it.
func engines() map[string]wazero.RuntimeConfig {
	return map[string]wazero.RuntimeConfig{
		"compiler":    features(wazero.NewRuntimeConfigCompiler()),
		"interpreter": features(wazero.NewRuntimeConfigInterpreter()),
	}
}

func features(c wazero.RuntimeConfig) wazero.RuntimeConfig {
	return c.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(1024).WithDebugInfoEnabled(false)
}

func newRuntime(t testing.TB, cfg wazero.RuntimeConfig) wazero.Runtime {
	t.Helper()
	rt := wazero.NewRuntimeWithConfig(t.Context(), cfg)
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	return rt
}

var errExhausted = errors.New("no fuel is left")

// size is how much of something a test does: usual; short, where the race
// detector slows everything and has nothing to find, since the package starts
// no goroutine; or long, where there is time (RLP_SOAK=1).
func size(usual, short, long int) int {
	switch {
	case testing.Short():
		return short
	case os.Getenv("RLP_SOAK") != "":
		return long
	}
	return usual
}

// plenty is a budget that no test uses up by accident.
const plenty = 1 << 50

// serve gives rt the host's half, which calls asked whenever it is asked.
func serve(t testing.TB, rt wazero.Runtime, fuel *meter.Fuel, asked ...func()) {
	t.Helper()
	refill := func(_ context.Context, mod api.Module, stack []uint64) {
		for _, f := range asked {
			f()
		}
		old := int64(stack[0])
		if _, grows := meter.Growth(old); grows {
			return
		}
		next, ok := fuel.Refill(old)
		if !ok {
			counterOf(mod).Set(uint64(old))
			panic(errExhausted)
		}
		counterOf(mod).Set(uint64(next))
		stack[0] = uint64(next)
	}
	i64 := []api.ValueType{api.ValueTypeI64}
	_, err := rt.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refill), i64, i64).Export(meter.ImportName).Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

// begun calls what was in the module's start section, as whoever runs it does.
func begun(mod api.Module, err error) (api.Module, error) {
	if err != nil {
		return nil, err
	}
	if start := mod.ExportedFunction(meter.StartName); start != nil {
		if _, err := start.Call(context.Background()); err != nil {
			return nil, errors.Join(err, mod.Close(context.Background()))
		}
	}
	return mod, nil
}

func counterOf(mod api.Module) api.MutableGlobal {
	return mod.ExportedGlobal(meter.CounterName).(api.MutableGlobal)
}

func rewrite(t testing.TB, wasm []byte) []byte {
	t.Helper()
	out, err := meter.Rewrite(wasm, meter.Option{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// outcome is what came of a call, in words that do not depend on where
// functions are.
func outcome(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, errExhausted) {
		return errExhausted.Error()
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	if _, why, ok := strings.Cut(first, "] failed: "); ok {
		return why // of a start function, whose number is before
	}
	return first
}
