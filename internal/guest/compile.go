// Package guest runs one WebAssembly module: compiled, cached, linked to the
// functions it imports and nothing else, and ended at its limits.
//
// A guest ends in one way, the first that happened, and that is known from
// what this package did or saw itself, never from a code or a text that a
// guest can produce.
//
// Decoding and compiling are a guest's input too: what a module has is counted
// before the engine sees it, and the engine compiles it in another process.
//
// No other package knows the engine, and this one knows no policy.
package guest

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"runloop.dev/rlp/internal/abi"
)

// entry is the function that a guest is run by.
const entry = "_start"

// compileWorkers halve the first compilation of a large module.
const compileWorkers = 2

// Config is a module and what it is linked to.
type Config struct {
	Module []byte     // the core module, as it was verified
	Name   string     // for messages
	Funcs  []abi.Func // all that may be imported; [Module.Link] may be given others of the same types

	// MemoryBytes caps the linear memory. 0 is none at all.
	MemoryBytes int64

	// CacheDir is where native code is kept between processes; the caller has
	// scoped it to a tenant. "" keeps none.
	CacheDir string

	// Compiler finds the program that compiles what is not yet cached: one whose
	// main hands its arguments to [BeCompiler]. Without one only the smallest
	// modules are compiled at all.
	Compiler func() (path string, err error)
	Bound    Bound // what compiling may take
}

// Module is a module ready to run. It is for one run at a time.
type Module struct {
	cfg      Config
	shape    *shape
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	engine   wazero.CompilationCache
	cache    *cache

	run       *run            // the run under way
	tallies   []*int64        // where host functions count their charges
	abandoned <-chan struct{} // closed when the guest that did not stop has; nil: there is none
}

// ErrNoStart refuses a module that is no program.
var ErrNoStart = fmt.Errorf("%w: it exports no function %s of type () -> ()", ErrModule, entry)

// Compile checks and compiles a module and links it. Errors that are the
// module's own wrap [ErrModule]; an [ImportError] names an import.
func Compile(ctx context.Context, cfg Config) (*Module, error) {
	m, err := Prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := m.Link(ctx, cfg.Funcs); err != nil {
		return nil, err
	}
	return m, nil
}

// Prepare is Compile without linking: of cfg.Funcs it looks at the types alone.
func Prepare(ctx context.Context, cfg Config) (*Module, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("compiling %s: %w", cfg.Name, err)
	}
	s, err := scan(cfg.Module)
	if err != nil {
		return nil, fmt.Errorf("compiling %s: %w", cfg.Name, err)
	}
	if _, err := link(s.imports, cfg.Funcs); err != nil {
		return nil, fmt.Errorf("linking %s: %w", cfg.Name, err)
	}
	m := &Module{cfg: cfg, shape: s, cache: openCache(cfg.CacheDir, cfg.Module)}
	if err := m.compile(ctx); err != nil {
		_ = m.Close()
		return nil, fmt.Errorf("compiling %s: %w", cfg.Name, err)
	}
	return m, nil
}

// Link gives a prepared module its functions. It is closed when that fails.
func (m *Module) Link(ctx context.Context, known []abi.Func) error {
	funcs, err := link(m.shape.imports, known)
	if err == nil {
		err = m.export(ctx, funcs)
	}
	if err != nil {
		_ = m.Close()
		return fmt.Errorf("linking %s: %w", m.cfg.Name, err)
	}
	return nil
}

// compile makes native code: of a module that is small here and now, of another
// in a process of its own, unless there is some in the cache.
func (m *Module) compile(ctx context.Context) error {
	var err error
	switch {
	case len(m.cfg.Module) <= compileHere:
		err = m.compileSmall(ctx)
	default:
		err = m.compileLarge(ctx)
	}
	if err != nil {
		return err
	}
	start, ok := m.compiled.ExportedFunctions()[entry]
	if !ok || len(start.ParamTypes())+len(start.ResultTypes()) > 0 {
		return ErrNoStart
	}
	return nil
}

func (m *Module) compileSmall(ctx context.Context) error {
	metered, err := m.shape.metered(m.cfg.Module)
	if err != nil {
		return err
	}
	m.runtime = wazero.NewRuntimeWithConfig(ctx, runtimeConfig(nil))
	if m.compiled, err = m.runtime.CompileModule(ctx, metered); err != nil {
		return fmt.Errorf("%w: %w", ErrModule, err)
	}
	return nil
}

// compileLarge takes native code from the cache, or has it made. Where the
// cache cannot be written it is done without.
func (m *Module) compileLarge(ctx context.Context) error {
	if m.fromCache() {
		return nil
	}
	t, err := m.cache.claim(ctx, m.cfg.Bound)
	if err != nil {
		return err
	}
	if m.fromCache() { // what another process made meanwhile
		t.end(nil)
		return nil
	}
	err = m.build(ctx)
	if errors.Is(err, ErrCompiler) && m.cache.base != "" {
		m.cache.giveUp(err)
		err = m.build(ctx)
	}
	t.end(err)
	return err
}

// fromCache loads what is kept of the module, or throws it away.
func (m *Module) fromCache() bool {
	if !m.cache.exists() {
		return false
	}
	if m.load(m.cache.dir) != nil {
		m.cache.discard()
		return false
	}
	m.cache.used = true
	return true
}

// build has the module compiled, loads it, and keeps it if there is a cache.
func (m *Module) build(ctx context.Context) error {
	dir, err := m.cache.workshop()
	if err != nil {
		return err
	}
	if err = compileInto(ctx, &m.cfg, dir); err == nil {
		if err = m.load(dir); err != nil {
			err = fmt.Errorf("%w: %w", ErrCompiler, err)
		}
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	m.cache.keep(dir)
	return nil
}

// load reads what was compiled into a folder. It never compiles: what the
// engine does not find there it would have to make, and the context in which
// it is asked to is over.
func (m *Module) load(dir string) error {
	short, err := readEntry(dir)
	if err != nil {
		return err
	}
	if m.engine, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
		return err
	}
	m.runtime = wazero.NewRuntimeWithConfig(context.Background(), runtimeConfig(m.engine))
	over, cancel := context.WithCancel(context.Background())
	cancel()
	m.compiled, err = m.runtime.CompileModule(experimental.WithCompilationWorkers(over, compileWorkers), short)
	if err != nil {
		_ = m.closeRuntime()
	}
	return err
}

// runtimeConfig is how every guest is compiled. The engine has nothing to
// interrupt it by, which would make guests many times slower: the module meters
// itself, and [Module.refill] ends it.
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
func (m *Module) export(ctx context.Context, funcs []abi.Func) error {
	if err := m.exportRefill(ctx); err != nil {
		return err
	}
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range funcs {
		b, ok := builders[f.Module]
		if !ok {
			b = m.runtime.NewHostModuleBuilder(f.Module)
			builders[f.Module] = b
		}
		b.NewFunctionBuilder().
			WithGoFunction(m.hostFunc(f), valueTypes(f.Params), valueTypes(f.Results)).
			Export(f.Name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

func valueTypes(list []abi.Type) []api.ValueType {
	out := make([]api.ValueType, len(list))
	for i, t := range list {
		out[i] = api.ValueType(t)
	}
	return out
}

// Imports is what the module imports, in its order.
func (m *Module) Imports() []Import { return m.shape.imports }

// Cached reports whether the native code came from the cache.
func (m *Module) Cached() bool { return m.cache.used }

// CacheErr is why the cache was not used although there was a directory.
func (m *Module) CacheErr() error { return m.cache.err }

// Close frees the module; where a guest that could not be stopped still runs in
// it, as soon as that has.
func (m *Module) Close() error {
	if m.abandoned != nil {
		go func() {
			<-m.abandoned
			_ = m.closeRuntime()
		}()
		return nil
	}
	return m.closeRuntime()
}

func (m *Module) closeRuntime() error {
	if m.runtime == nil {
		return nil
	}
	err := m.runtime.Close(context.Background())
	m.runtime = nil
	if m.engine != nil {
		err = errors.Join(err, m.engine.Close(context.Background()))
		m.engine = nil
	}
	return err
}
