// Bare runs a WASI module with the engine and nothing else: no policy, no jail,
// no record, no limit. It is the floor that a launch is measured against, and
// is written as anybody would write it, with the engine's own file cache and
// its own WASI.
//
//	bare [-cache DIR] [-log FILE] [-dir DIR] MODULE.wasm [ARGS...]
//
// With -log it appends one line to a file and waits until the disk has it
// (fdatasync): the least that a record which outlives a power loss can cost.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

type options struct {
	cache, log, dir string
	args            []string
}

func main() {
	var o options
	flag.StringVar(&o.cache, "cache", "", "folder of compiled modules; without it each start compiles")
	flag.StringVar(&o.log, "log", "", "file to append one line to, on disk before the end")
	flag.StringVar(&o.dir, "dir", "", "folder that the guest sees as /")
	flag.Parse()
	o.args = flag.Args()
	code, err := run(context.Background(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run returns what the module exited with.
func run(ctx context.Context, o options) (int, error) {
	if len(o.args) == 0 {
		return 0, errors.New("which module? bare [-cache DIR] [-log FILE] [-dir DIR] MODULE.wasm [ARGS...]")
	}
	wasm, err := os.ReadFile(o.args[0])
	if err != nil {
		return 0, err
	}
	rc := wazero.NewRuntimeConfigCompiler()
	if o.cache != "" {
		cache, err := wazero.NewCompilationCacheWithDir(o.cache)
		if err != nil {
			return 0, err
		}
		defer cache.Close(ctx)
		rc = rc.WithCompilationCache(cache)
	}
	rt := wazero.NewRuntimeWithConfig(ctx, rc)
	defer rt.Close(ctx)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return 0, err
	}
	mc := wazero.NewModuleConfig().WithArgs(o.args...).WithStdout(os.Stdout).WithStderr(os.Stderr).
		WithSysWalltime().WithSysNanotime()
	if o.dir != "" {
		mc = mc.WithFSConfig(wazero.NewFSConfig().WithDirMount(o.dir, "/"))
	}
	_, err = rt.InstantiateWithConfig(ctx, wasm, mc)
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	if err == nil && o.log != "" {
		err = record(o.log, o.args[0])
	}
	if err != nil || exit == nil {
		return 0, err
	}
	return int(exit.ExitCode()), nil
}
