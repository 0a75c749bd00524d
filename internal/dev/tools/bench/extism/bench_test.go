package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	sdk "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"runloop.dev/rlp/internal/dev/tools/bench/report"
	"runloop.dev/rlp/internal/dev/tools/bench/wasm"
)

// benchCalls is how many host calls one call of the plugin makes.
const benchCalls = 1 << 12

// BenchmarkHostCall is a call from a plugin to a function of the host's.
func BenchmarkHostCall(b *testing.B) {
	for _, c := range []struct {
		name   string
		module []byte
		answer sdk.HostFunctionStackCallback
	}{
		{"stack", callsOnStack(benchCalls), func(ctx context.Context, _ *sdk.CurrentPlugin, stack []uint64) { stack[0] = 0 }},
		{"argument", callsInMemory(benchCalls, false), acknowledge},
		{"memory", callsInMemory(benchCalls, true), answer},
	} {
		b.Run("protocol="+c.name, func(b *testing.B) {
			p, err := plugin(b.Context(), c.module, c.answer)
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close(b.Context())
			for b.Loop() {
				if code, _, err := p.Call("run", nil); err != nil || code != 0 {
					b.Fatal(code, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/benchCalls, "ns/call")
		})
	}
}

// compiled is a plugin that does nothing, ready to be instantiated.
func compiled(tb testing.TB) *sdk.CompiledPlugin {
	manifest := sdk.Manifest{Wasm: []sdk.Wasm{sdk.WasmData{Data: wasm.Nothing("run", []wasm.Type{wasm.I32})}}}
	config := sdk.PluginConfig{RuntimeConfig: wazero.NewRuntimeConfigCompiler(), EnableWasi: true}
	c, err := sdk.NewCompiledPlugin(tb.Context(), manifest, config, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// called is an instance that has been called once.
func called(b *testing.B, c *sdk.CompiledPlugin) (*sdk.Plugin, error) {
	p, err := c.Instance(b.Context(), sdk.PluginInstanceConfig{})
	if err != nil {
		return nil, err
	}
	if code, _, err := p.Call("run", nil); err != nil || code != 0 {
		return nil, fmt.Errorf("it returned %d: %w", code, err)
	}
	return p, nil
}

// BenchmarkInstantiate is an instance of a compiled plugin, one call of it that
// does nothing, and its end.
func BenchmarkInstantiate(b *testing.B) {
	c := compiled(b)
	defer c.Close(b.Context())
	report.Median(b, func() error {
		p, err := called(b, c)
		if err != nil {
			return err
		}
		return p.Close(b.Context())
	})
}

// BenchmarkIdle is what a thousand instances that were called once and wait
// take of the machine's memory, each.
func BenchmarkIdle(b *testing.B) {
	for b.Loop() {
		c := compiled(b)
		report.Each(b, 1000, func() error {
			_, err := called(b, c)
			return err
		})
		c.Close(b.Context())
	}
}

func TestCalls(t *testing.T) {
	for _, replies := range []bool{false, true} {
		calls := 0
		p, err := plugin(t.Context(), callsInMemory(3, replies), func(ctx context.Context, p *sdk.CurrentPlugin,
			stack []uint64,
		) {
			answer(ctx, p, stack)
			calls++
		})
		if err != nil {
			t.Fatal(err)
		}
		if code, _, err := p.Call("run", nil); code != 0 || err != nil || calls != 3 {
			t.Errorf("%d calls, code %d, %v", calls, code, err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "m.wasm")
	if err := os.WriteFile(file, wasm.Says("ok\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if code, err := run(t.Context(), filepath.Join(dir, "cache"), []string{file}); code != 0 || err != nil {
			t.Fatal(code, err)
		}
	}
	if _, err := run(t.Context(), "", []string{filepath.Join(dir, "none")}); err == nil {
		t.Error("ran a file that is not there")
	}
}
