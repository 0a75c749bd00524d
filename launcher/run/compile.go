package run

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
)

// CheckModule refuses a module that could not be linked, or has too much of
// something.
func CheckModule(name string, module []byte, compiler func() (path string, err error),
	added ...hostcalls.Added,
) error {
	funcs, err := signatures(added...)
	if err != nil {
		return err
	}
	return guest.Check(guest.Config{Module: module, Name: name, Funcs: funcs, Compiler: compiler})
}

func signatures(added ...hostcalls.Added) ([]abi.Func, error) {
	sys, err := wasi.New(wasi.Config{})
	if err != nil {
		return nil, err
	}
	defer sys.Close()
	return append(sys.Funcs(), hostcalls.Signatures(added...)...), nil
}

// A Compilation is a module that is compiled before anybody launches it.
type Compilation struct {
	Agent    string // for messages
	Module   []byte
	SHA256   string // as of a [Spec]
	Tenant   string // that will launch it
	CacheDir string // of that tenant
	Compiler func() (path string, err error)
	Slow     func() func() // as of a [Spec]; may be nil
}

// Compile makes native code of a module and keeps it for launches, all of which
// find it there. It refuses what a launch would refuse. uncached says why the
// cache could not be used: each launch will compile anew then.
func Compile(ctx context.Context, c Compilation) (uncached, err error) {
	funcs, err := signatures()
	if err != nil {
		return nil, err
	}
	if c.Slow != nil {
		defer c.Slow()()
	}
	m, err := guest.Prepare(ctx, guest.Config{
		Module: c.Module, SHA256: c.SHA256, Name: c.Agent, CacheDir: c.CacheDir,
		Scope: c.Tenant, Compiler: c.Compiler, Funcs: funcs,
	})
	if err != nil {
		return nil, err
	}
	return m.CacheErr(), m.Close()
}

// CompileStatus is the exit status that goes with an error of [Compile].
func CompileStatus(err error) int {
	switch {
	case errors.Is(err, context.Canceled):
		return StatusCancelled
	case errors.Is(err, guest.ErrCompiler):
		return StatusUnavailable
	}
	return StatusInput
}

// errBroke is a module at which this program broke, by a fault of its own.
var errBroke = errors.New("compiling the agent broke the program; its log says where")

// compiled is a module ready to be linked, or why there is none.
type compiled struct {
	module *guest.Module
	took   time.Duration
	err    error
}

func (c compiled) close() {
	if c.module != nil {
		_ = c.module.Close()
	}
}

// compile begins to compile the guest, which needs nothing of what is opened
// for the run meanwhile. Nothing is compiled for a run that the plan refuses.
func (r *run) compile(ctx context.Context) <-chan compiled {
	done := make(chan compiled, 1)
	if outcome, _, _ := refusal(r.spec, r.plan); outcome != OK || r.spec.Body != nil {
		done <- compiled{}
		return done
	}
	var c compiled
	guard.Go(func() error { c = r.compileNow(ctx); return nil }, func(err error) {
		var broken *guard.Broken
		if errors.As(err, &broken) {
			r.note(slog.LevelError, "compiling broke", slog.String("what", broken.What),
				slog.String("where", string(broken.Stack)))
			c = compiled{err: errBroke}
		}
		done <- c
	})
	return done
}

func (r *run) compileNow(ctx context.Context) compiled {
	if r.spec.Slow != nil {
		defer r.spec.Slow()()
	}
	funcs, err := signatures(r.spec.Components.Added...)
	if err != nil {
		return compiled{err: err}
	}
	start := r.spec.Now()
	mem, _ := r.plan.Limits.Get(caps.MemoryBytes)
	module, err := guest.Prepare(ctx, guest.Config{
		Module: r.spec.Module, SHA256: r.spec.ModuleSHA256, Name: r.spec.Agent, CacheDir: r.spec.CacheDir,
		Compiler: r.spec.Compiler, Funcs: funcs, MemoryBytes: mem,
		Library: r.spec.Library, Scope: r.spec.Tenant,
	})
	return compiled{module, r.spec.Now().Sub(start), err}
}
