package guest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/meter"
)

// DefaultGrace is how long a guest may take to stop once it was told to.
const DefaultGrace = time.Second

// RunConfig bounds one run.
type RunConfig struct {
	Wall  time.Duration // from the first instruction, a start section's included; 0 is none at all
	Gone  time.Duration // of Wall, what has passed before
	Fuel  *int64        // instructions, as internal/engine/meter counts them; 0 is none at all, nil no bound
	Grace time.Duration // 0 is [DefaultGrace]
}

const errAbandoned Unable = "an earlier run of this agent never stopped"

// run is one run of a module. What ended it is written once, by whoever was
// first.
//
// It is the context that its guest runs in: the engine hands that to every host
// function, and a function that is shared by many runs finds its own by looking
// at the type, which takes a nanosecond; a value of a context takes ten.
type run struct {
	context.Context // set before the guest is entered

	mem    memory
	fuel   fuel
	links  []linked // of the module
	inHost int      // 1 and the index of the import whose function the guest is in; the guest's goroutine alone
	names  []string // of links
	cancel context.CancelFunc

	caller context.Context // who may give up on the run
	clock  stopwatch

	over    atomic.Bool // an end is known: host functions refuse
	looks   atomic.Bool // a host function has to look closer: over, or the fuel is bounded
	stopped chan struct{}

	mu  sync.Mutex
	end End
}

// finish records an end and makes the guest stop, unless there is one already.
func (r *run) finish(e End) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end.Kind != 0 {
		return
	}
	r.end = e
	r.over.Store(true)
	r.looks.Store(true)
	close(r.stopped)
	r.cancel()
}

func (r *run) hostEnd(err error) {
	r.look() // first
	var exit *abi.Exit
	switch {
	case !errors.As(err, &exit):
		r.finish(r.fault(err))
	case exit.Code == 0:
		r.finish(End{Kind: OK})
	default:
		r.finish(End{Kind: Exit, ExitCode: exit.Code})
	}
}

func (r *run) fault(err error) End {
	e := End{Kind: HostError, Err: err}
	if r.inHost > 0 {
		e.In = r.names[r.inHost-1]
	}
	return e
}

// Run instantiates the module and calls _start. It returns when the guest has
// ended, or is abandoned. The next run may begin after that.
func (m *Module) Run(ctx context.Context, cfg RunConfig) End {
	if m.abandoned != nil {
		return End{Kind: HostError, Err: errAbandoned}
	}
	r := &run{stopped: make(chan struct{}), caller: ctx, fuel: newFuel(cfg.Fuel), links: m.links, names: m.names}
	r.looks.Store(r.fuel.bounded)
	r.clock.given, r.clock.gone, r.clock.above = cfg.Wall, cfg.Gone, abi.ClockOf(ctx)
	r.clock.over = func(wall time.Duration) { r.finish(timedOut(wall)) }
	// The guest's context is ended by finish alone, so that the end is on
	// record before anything can notice.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r.cancel = cancel
	r.mem.limit, r.mem.beside, r.mem.frame = uint64(max(m.memoryBytes, 0)), m.code.beside, m.code.frame
	r.mem.stacks = m.stacks
	r.mem.refused = func() { r.finish(End{Kind: Memory, Err: errMemoryLimit}) }
	r.mem.missing = func() { r.finish(End{Kind: HostError, Err: errNoMemory}) }
	m.run = r

	switch {
	case context.Cause(ctx) != nil:
		r.finish(End{Kind: Cancelled, Err: context.Cause(ctx)})
	case taken(m.code.minPages*pageSize, m.code.beside) > r.mem.limit:
		r.mem.refused()
	case cfg.Wall-cfg.Gone <= 0:
		r.finish(timedOut(cfg.Wall))
	case r.fuel.budget == 0:
		r.finish(End{Kind: Fuel, Err: errFuel})
	}
	if r.over.Load() {
		return r.end
	}
	return m.supervise(ctx, inner, cfg)
}

// supervise runs the guest beside the watch over it.
func (m *Module) supervise(ctx, inner context.Context, cfg RunConfig) End {
	r := m.run
	stopWatching := r.watch(ctx)
	defer stopWatching()
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.enter(abi.WithHolder(abi.WithClock(inner, &r.clock), m), r)
	}()
	abandoned := false
	select {
	case <-done:
	case <-r.stopped:
		abandoned = !within(done, cfg.Grace)
	}
	if abandoned {
		m.abandoned = done
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.end
	e.Wall, e.Waited = r.clock.read()
	e.Abandoned = abandoned
	if abandoned {
		e.Stopped = done
	} else { // else the guest still writes to it
		e.PeakMemory, e.Fuel = int64(r.mem.peak), r.fuel.used(m.tallies)
	}
	return e
}

// watch ends the run when its time is over or the caller gives up, whatever
// the guest is doing. Ending cancels the guest's context, which host functions
// that wait look at; a guest that computes is ended by [refill].
func (r *run) watch(ctx context.Context) (stop func()) {
	r.clock.start()
	release := context.AfterFunc(ctx, func() {
		r.finish(End{Kind: Cancelled, Err: context.Cause(ctx)})
	})
	return func() {
		r.clock.end()
		release()
	}
}

func within(done <-chan struct{}, grace time.Duration) bool {
	if grace <= 0 {
		grace = DefaultGrace
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// enter is the guest's goroutine. Its end, when no one recorded another, is
// that it returned, or that the engine stopped it.
func (m *Module) enter(ctx context.Context, r *run) {
	// A fault in memory that is mapped from a file, such as a journal that
	// somebody cut, ends the run and not the process.
	debug.SetPanicOnFault(true)
	defer r.mem.Free()
	defer r.mem.stack.free(m.stacks)
	defer func() {
		// The engine recovers what happens inside the guest; this is what
		// happens around it, such as a memory that cannot be had.
		if p := recover(); p != nil {
			r.finish(End{Kind: HostError, Err: fmt.Errorf("running the guest: %v\n%s", p, debug.Stack())})
		}
	}()
	err := m.start(ctx, r)
	r.look() // first: the guest may have been faster than the watch
	switch {
	case r.fuel.left() < 0: // after the last place that looks
		r.finish(End{Kind: Fuel, Err: errFuel})
	case err == nil:
		r.finish(End{Kind: OK})
	case r.inHost > 0 || isFault(err):
		r.finish(r.fault(err))
	case r.mem.stack.isOver(err):
		r.finish(End{Kind: Memory, Err: errMemoryLimit})
	default:
		r.finish(End{Kind: Trap, Trap: oneLine(innermost(err).Error()), Err: err})
	}
}

// isFault reports whether err is a fault of this program: one of its own, which no
// instruction of a guest causes, or what it could not do.
func isFault(err error) bool {
	var fault runtime.Error
	var unable Unable
	return errors.As(err, &fault) || errors.As(err, &unable)
}

func (m *Module) start(ctx context.Context, r *run) error {
	r.Context = experimental.WithMemoryAllocator(ctx, &r.mem)
	// The engine's own source of random numbers, which no guest can reach, takes
	// longer to make than the instance does, and more memory.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)
	instance, err := m.code.runtime.InstantiateModule(r, m.code.compiled, config)
	if err != nil {
		return err
	}
	defer instance.Close(context.WithoutCancel(ctx))
	r.fuel.metered(instance)
	if err = r.call(instance.ExportedFunction(meter.StartName)); err != nil {
		return err
	}
	return r.call(instance.ExportedFunction(entry))
}

func (r *run) call(fn api.Function) error {
	if fn == nil {
		return nil
	}
	if err := r.mem.lend(fn); err != nil {
		return err
	}
	_, err := fn.Call(r)
	r.mem.giveBack()
	return err
}

func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
