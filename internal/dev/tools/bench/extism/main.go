// Extism runs a WASI module by Extism's Go SDK, as its command line does
// (`extism call MODULE _start --wasi`), with the engine's file cache. Its tests
// measure the SDK's host calls and instances in one process.
//
//	extism [-cache DIR] MODULE.wasm
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	sdk "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
)

func main() {
	cache := flag.String("cache", "", "folder of compiled modules")
	flag.Parse()
	code, err := run(context.Background(), *cache, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "extism:", err)
		os.Exit(1)
	}
	os.Exit(int(code))
}

// run returns what the module exited with.
func run(ctx context.Context, dir string, args []string) (uint32, error) {
	if len(args) != 1 {
		return 0, errors.New("which module? extism [-cache DIR] MODULE.wasm")
	}
	rc := wazero.NewRuntimeConfigCompiler()
	if dir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(dir)
		if err != nil {
			return 0, err
		}
		defer cache.Close(ctx)
		rc = rc.WithCompilationCache(cache)
	}
	manifest := sdk.Manifest{Wasm: []sdk.Wasm{sdk.WasmFile{Path: args[0]}}}
	mc := wazero.NewModuleConfig().WithStdout(os.Stdout).WithStderr(os.Stderr).WithSysWalltime().WithSysNanotime()
	p, err := sdk.NewPlugin(ctx, manifest, sdk.PluginConfig{RuntimeConfig: rc, EnableWasi: true, ModuleConfig: mc}, nil)
	if err != nil {
		return 0, err
	}
	defer p.Close(ctx)
	code, _, err := p.CallWithContext(ctx, "_start", nil)
	return code, err
}
