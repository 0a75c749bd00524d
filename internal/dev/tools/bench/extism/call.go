package main

import (
	"context"
	"encoding/binary"
	"fmt"

	sdk "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"runloop.dev/rlp/internal/dev/tools/bench/wasm"
)

const env = "extism:host/env"

// word is what the guest asks about, and reply what it is told. Both are eight
// bytes, which is what the protocol moves at once: any other length costs more.
const word, reply = "notebook", "answered"

// callsInMemory is a plugin that makes n host calls whose argument goes through
// Extism's memory, as its PDKs do it: a block is allocated and filled, the host
// reads it, the block is freed. With replies the answer comes the same way.
func callsInMemory(n int, replies bool) []byte {
	const alloc, free, length, store, load, ask = 0, 1, 2, 3, 4, 5
	const turn, given, got = 0, 1, 2
	body := wasm.Join(wasm.ConstI64(len(word)), wasm.Call(alloc), wasm.Set(given),
		wasm.Get(given), wasm.ConstI64(int(binary.LittleEndian.Uint64([]byte(word)))), wasm.Call(store),
		wasm.Get(given), wasm.Call(ask), wasm.Set(got), wasm.Get(given), wasm.Call(free))
	if replies {
		body = wasm.Join(body, wasm.Get(got), wasm.Call(length), wasm.Drop(),
			wasm.Get(got), wasm.Call(load), wasm.Drop(), wasm.Get(got), wasm.Call(free))
	}
	one := []wasm.Type{wasm.I64}
	return wasm.Module{
		Imports: []wasm.Func{
			{Module: env, Name: "alloc", Params: one, Results: one},
			{Module: env, Name: "free", Params: one},
			{Module: env, Name: "length", Params: one, Results: one},
			{Module: env, Name: "store_u64", Params: []wasm.Type{wasm.I64, wasm.I64}},
			{Module: env, Name: "load_u64", Params: one, Results: one},
			{Module: "extism:host/user", Name: "ask", Params: one, Results: one},
		},
		Export: "run", Results: []wasm.Type{wasm.I32}, Locals: []wasm.Type{wasm.I32, wasm.I64, wasm.I64},
		Code: wasm.Join(wasm.Times(turn, n, body), wasm.ConstI32(0)), Pages: 1,
	}.Bytes()
}

// callsOnStack is a plugin that makes n host calls with a number each way, which
// is all that fits without Extism's memory.
func callsOnStack(n int) []byte {
	one := []wasm.Type{wasm.I64}
	return wasm.Module{
		Imports: []wasm.Func{{Module: "extism:host/user", Name: "ask", Params: one, Results: one}},
		Export:  "run", Results: []wasm.Type{wasm.I32}, Locals: []wasm.Type{wasm.I32},
		Code:  wasm.Join(wasm.Times(0, n, wasm.Join(wasm.ConstI64(1), wasm.Call(0), wasm.Drop())), wasm.ConstI32(0)),
		Pages: 1,
	}.Bytes()
}

// plugin is an instance of module whose host answers by f.
func plugin(ctx context.Context, module []byte, f sdk.HostFunctionStackCallback) (*sdk.Plugin, error) {
	manifest := sdk.Manifest{Wasm: []sdk.Wasm{sdk.WasmData{Data: module}}}
	config := sdk.PluginConfig{RuntimeConfig: wazero.NewRuntimeConfigCompiler()}
	ask := sdk.NewHostFunctionWithStack("ask", f, []sdk.ValueType{sdk.ValueTypePTR}, []sdk.ValueType{sdk.ValueTypePTR})
	return sdk.NewPlugin(ctx, manifest, config, []sdk.HostFunction{ask})
}

// answer reads what the plugin asks about and tells it, by memory; it fails
// when it is asked about another thing.
func answer(_ context.Context, p *sdk.CurrentPlugin, stack []uint64) {
	asked, err := p.ReadString(stack[0])
	if err == nil && asked != word {
		err = fmt.Errorf("asked about %q", asked)
	}
	if err == nil {
		stack[0], err = p.WriteString(reply)
	}
	if err != nil {
		panic(err)
	}
}

// acknowledge reads what the plugin asks about, and answers with a number.
func acknowledge(_ context.Context, p *sdk.CurrentPlugin, stack []uint64) {
	asked, err := p.ReadString(stack[0])
	if err != nil || asked != word {
		panic(fmt.Errorf("asked about %q: %w", asked, err))
	}
	stack[0] = 0
}
