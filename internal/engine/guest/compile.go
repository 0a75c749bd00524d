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
// What a module is compiled to may be shared by many runs at once; nothing that
// a run can change is.
//
// No other package knows the engine, and this one knows no policy.
package guest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"runloop.dev/rlp/internal/engine/abi"
)

// entry is the function that a guest is run by.
const entry = "_start"

// Config is a module and what it is linked to.
type Config struct {
	Module []byte     // the core module, as it was verified
	SHA256 string     // of Module, in hex, where it is known; "": it is made where it is needed
	Name   string     // for messages
	Funcs  []abi.Func // all that may be imported; [Module.Link] may be given others of the same types

	// MemoryBytes caps the linear memory. 0 is none at all.
	MemoryBytes int64

	// Scope is whose the module is: nothing that was compiled for one scope is
	// given to another.
	Scope string

	// Library is where compiled modules are shared by the runs of this process.
	// nil: the module is for this run alone.
	Library *Library

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
	name        string
	memoryBytes int64
	ceiling     *ceiling // of what the runs of this process may have; nil: there is none
	stacks      *stacks  // where runs have theirs from

	code   *code
	free   func() error // gives up the code
	cached bool         // nothing had to be compiled

	links     []linked        // in the places of the code's imports
	names     []string        // of links
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
	err := context.Cause(ctx)
	var m *Module
	if err == nil {
		m, err = cfg.prepare(ctx)
	}
	var imported *ImportError
	switch {
	case errors.As(err, &imported):
		return nil, fmt.Errorf("linking %s: %w", cfg.Name, err)
	case err != nil:
		return nil, fmt.Errorf("compiling %s: %w", cfg.Name, err)
	}
	return m, nil
}

// prepare takes the code from the library, if there is one, or makes it.
func (cfg *Config) prepare(ctx context.Context) (*Module, error) {
	if cfg.Library != nil {
		return cfg.Library.prepare(ctx, cfg)
	}
	c, err := newCode(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return cfg.module(c, c.cache.used, c.close), nil
}

func (cfg *Config) module(c *code, cached bool, free func() error) *Module {
	m := &Module{name: cfg.Name, memoryBytes: cfg.MemoryBytes, code: c, cached: cached, free: free, stacks: new(stacks)}
	if cfg.Library != nil {
		m.ceiling, m.stacks = &cfg.Library.memory, &cfg.Library.stacks
	}
	return m
}

// Link gives a prepared module its functions. It is closed when that fails.
func (m *Module) Link(_ context.Context, known []abi.Func) error {
	if err := m.link(known); err != nil {
		_ = m.Close()
		return fmt.Errorf("linking %s: %w", m.name, err)
	}
	return nil
}

// link finds what is behind each import; that there is something was seen when
// the code was made, but by another's functions maybe.
func (m *Module) link(known []abi.Func) error {
	m.links, m.names, m.tallies = make([]linked, len(m.code.wants)), make([]string, len(m.code.wants)), nil
	for i, want := range m.code.wants {
		at := slices.IndexFunc(known, want.is)
		if at < 0 {
			if _, err := link(m.code.imports, known); err != nil {
				return err
			}
			return errUnlinked
		}
		m.links[i], m.names[i] = m.linked(known[at]), known[at].Name
	}
	return nil
}

// errUnlinked says that a function is missing; which, another error says.
var errUnlinked = fmt.Errorf("%w: it imports what is not there", ErrModule)

// Imports is what the module imports, in its order.
func (m *Module) Imports() []Import { return m.code.imports }

// Cached reports whether nothing had to be compiled: the native code came from
// the cache, or the library had it.
func (m *Module) Cached() bool { return m.cached }

// CacheErr is why the cache was not used although there was a directory.
func (m *Module) CacheErr() error { return m.code.cache.err }

// Close frees the module; where a guest that could not be stopped still runs in
// it, as soon as that has.
func (m *Module) Close() error {
	if m.abandoned != nil {
		go func() {
			<-m.abandoned
			_ = m.close()
		}()
		return nil
	}
	return m.close()
}

func (m *Module) close() error {
	if m.free == nil {
		return nil
	}
	free := m.free
	m.free = nil
	return free()
}
