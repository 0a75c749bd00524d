package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"runloop.dev/rlp/internal/engine/abi"
)

// code is what a module is compiled to, with the host modules that it imports:
// a runtime of its own, in which any number of runs have an instance each. It
// does not change once it is made, and holds nothing of any run's: the functions
// that it exports to the guest find their run by their context, which is the run.
type code struct {
	imports  []Import
	wants    []Import // the functions among them, each once
	minPages uint64   // what its memory starts with
	beside   uint64   // what an instance takes beside it
	frame    uint64   // no frame of its native code is larger
	size     int64    // about what it takes, see [overhead]

	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	engine   wazero.CompilationCache
	cache    *cache

	cfg   *Config // until it is made
	shape *shape
}

const (
	// compileWorkers halve the first compilation of a large module.
	compileWorkers = 2

	// overhead is what any code takes beside its native code and its outline: the
	// engine's own, and the host modules.
	overhead = 128 << 10
)

// newCode checks and compiles a module, and gives it host modules for what it
// imports. An [ImportError] names an import.
func newCode(ctx context.Context, cfg *Config) (*code, error) {
	s, err := scan(cfg.Module)
	if err != nil {
		return nil, err
	}
	funcs, err := link(s.imports, cfg.Funcs)
	if err != nil {
		return nil, err
	}
	c := &code{
		cfg: cfg, shape: s, imports: s.imports, minPages: s.minPages, beside: s.beside, frame: s.frame(),
		size: overhead, cache: openCache(cfg.CacheDir, cfg),
	}
	if err = c.compile(ctx); err == nil {
		err = c.export(ctx, funcs)
	}
	c.cfg, c.shape = nil, nil
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// compile makes native code: of a module that is small here and now, of another
// in a process of its own, unless there is some in the cache.
func (c *code) compile(ctx context.Context) error {
	var err error
	switch {
	case len(c.cfg.Module) <= compileHere:
		err = c.compileSmall(ctx)
	default:
		err = c.compileLarge(ctx)
	}
	if err != nil {
		return err
	}
	start, ok := c.compiled.ExportedFunctions()[entry]
	if !ok || len(start.ParamTypes())+len(start.ResultTypes()) > 0 {
		return ErrNoStart
	}
	return nil
}

func (c *code) compileSmall(ctx context.Context) error {
	metered, err := c.shape.metered(c.cfg.Module)
	if err != nil {
		return err
	}
	c.runtime = wazero.NewRuntimeWithConfig(ctx, runtimeConfig(nil))
	if c.compiled, err = c.runtime.CompileModule(ctx, metered); err != nil {
		return fmt.Errorf("%w: %w", ErrModule, err)
	}
	return nil
}

// compileLarge takes native code from the cache, or has it made. Where the
// cache cannot be written it is done without.
func (c *code) compileLarge(ctx context.Context) error {
	if c.fromCache() {
		return nil
	}
	t, err := c.cache.claim(ctx, c.cfg.Bound)
	if err != nil {
		return err
	}
	if c.fromCache() { // what another process made meanwhile
		t.end(nil)
		return nil
	}
	err = c.build(ctx)
	if errors.Is(err, ErrCompiler) && c.cache.base != "" {
		c.cache.giveUp(err)
		err = c.build(ctx)
	}
	t.end(err)
	return err
}

// fromCache loads what is kept of the module, or throws it away.
func (c *code) fromCache() bool {
	if !c.cache.exists() {
		return false
	}
	if c.load(c.cache.dir) != nil {
		c.cache.discard()
		return false
	}
	c.cache.used = true
	return true
}

// build has the module compiled, loads it, and keeps it if there is a cache.
func (c *code) build(ctx context.Context) error {
	dir, err := c.cache.workshop()
	if err != nil {
		return err
	}
	if err = compileInto(ctx, c.cfg, dir); err == nil {
		if err = c.load(dir); err != nil {
			err = fmt.Errorf("%w: %w", ErrCompiler, err)
		}
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	c.cache.keep(dir)
	return nil
}

// load reads what was compiled into a folder. It never compiles: what the
// engine does not find there it would have to make, and the context in which
// it is asked to is over.
func (c *code) load(dir string) error {
	short, size, err := readEntry(dir, c.cfg.identity())
	if err != nil {
		return err
	}
	if c.engine, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
		return err
	}
	c.runtime = wazero.NewRuntimeWithConfig(context.Background(), runtimeConfig(c.engine))
	over, cancel := context.WithCancel(context.Background())
	cancel()
	c.compiled, err = c.runtime.CompileModule(experimental.WithCompilationWorkers(over, compileWorkers), short)
	if err != nil {
		_ = c.close()
	}
	c.size = overhead + size
	return err
}

// runtimeConfig is how every guest is compiled. The engine has nothing to
// interrupt it by, which would make guests many times slower: the module meters
// itself, and [refill] ends it.
func runtimeConfig(engine wazero.CompilationCache) wazero.RuntimeConfig {
	cfg := wazero.NewRuntimeConfigCompiler().
		WithCoreFeatures(api.CoreFeaturesV2). // what Go, Rust and C compile to; no threads, tail calls, exceptions
		WithDebugInfoEnabled(false)           // DWARF makes the cache larger and slower, for traces nobody reads
	if engine != nil {
		cfg = cfg.WithCompilationCache(engine)
	}
	return cfg
}

// export makes the functions that are imported, and only those, known to the
// engine, and what the metering imports.
func (c *code) export(ctx context.Context, funcs []abi.Func) error {
	if err := c.exportRefill(ctx); err != nil {
		return err
	}
	builders := map[string]wazero.HostModuleBuilder{}
	for i, f := range funcs {
		b, ok := builders[f.Module]
		if !ok {
			b = c.runtime.NewHostModuleBuilder(f.Module)
			builders[f.Module] = b
		}
		b.NewFunctionBuilder().
			WithGoFunction(&trampoline{i}, valueTypes(f.Params), valueTypes(f.Results)).
			Export(f.Name)
		c.wants = append(c.wants, Import{Module: f.Module, Name: f.Name, Params: f.Params, Results: f.Results})
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (i *Import) is(f abi.Func) bool {
	return i.Name == f.Name && i.Module == f.Module && slices.Equal(i.Params, f.Params) &&
		slices.Equal(i.Results, f.Results)
}

func valueTypes(list []abi.Type) []api.ValueType {
	out := make([]api.ValueType, len(list))
	for i, t := range list {
		out[i] = api.ValueType(t)
	}
	return out
}

// close frees the code. Nothing may run in it any more.
func (c *code) close() error {
	if c.runtime == nil {
		return nil
	}
	err := c.runtime.Close(context.Background())
	c.runtime = nil
	if c.engine != nil {
		err = errors.Join(err, c.engine.Close(context.Background()))
		c.engine = nil
	}
	return err
}
