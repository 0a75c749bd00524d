package wasi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"runloop.dev/rlp/internal/engine/abi"
)

// Module is the import module of every function here.
const Module = "wasi_snapshot_preview1"

// Config is what one run of a guest is given. The zero Config grants nothing:
// no files, no time, no environment, empty input, output thrown away.
type Config struct {
	Args []string // the guest's argv; Args[0] is its name
	Env  []string // NAME=value, as granted

	Stdin          io.Reader // nil is empty
	Stdout, Stderr io.Writer // nil discards; bounding them is the caller's

	FS     FS        // nil: no preopen at all
	Clock  Clock     // nil: a virtual clock
	Random io.Reader // nil: the system's generator

	// OnClock is called before the first answer that depends on Clock, with the
	// function's name, and once more before the first one that is no part of a
	// language's own start, if the first was. An error ends the run.
	OnClock func(op string, atStart bool) error
	// Begun is set by the first call that is no part of a language's own start;
	// whoever has calls beside these sets it, too. Nil: only these.
	Begun *bool

	// OnReject is called for each call that is refused because of a path that can
	// be none: nothing, with a NUL, too long, not UTF-8 or above the root. The FS
	// is not asked then. The text is a view of the guest's memory.
	OnReject func(op string, text []byte)

	MaxFiles int // open descriptors; 0 is DefaultMaxFiles
}

// ErrConfig is what New answers to arguments or environment that a guest could
// not be given as they are.
var ErrConfig = errors.New("invalid wasi configuration")

// A System is WASI as one run sees it. It belongs to one guest, and the guest
// is one thread: nothing here is for concurrent use.
type System struct {
	fs     FS
	clock  Clock
	random io.Reader
	fds    table

	args, env stringTable

	onClock    func(op string, atStart bool) error
	begun      *bool
	clockUsed  bool // since the run has begun
	startsUsed bool // before

	onReject func(op string, text []byte)
	isNone   bool   // the call under way named a path that can be none
	none     []byte // which is this

	path, path2 []byte  // scratch of resolve; an FS sees views of them
	events      []event // scratch of poll_oneoff

	moved int64 // bytes, of the calls that were not charged for yet

	// end is why the run must end; a call that sets it has no other result.
	end error
}

// New makes the system of one run. The caller closes it after the run.
func New(cfg Config) (*System, error) {
	s := &System{
		fs: cfg.FS, clock: cfg.Clock, random: cfg.Random, onClock: cfg.OnClock, onReject: cfg.OnReject,
		fds: table{max: cfg.MaxFiles},
	}
	if s.begun = cfg.Begun; s.begun == nil {
		s.begun = new(bool)
	}
	if s.clock == nil {
		s.clock = NewVirtualClock()
	}
	if s.random == nil {
		s.random = rand.Reader
	}
	if s.fds.max <= 0 {
		s.fds.max = DefaultMaxFiles
	}
	var err error
	if s.args, err = newStringTable("argument", cfg.Args); err != nil {
		return nil, err
	}
	for _, e := range cfg.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return nil, fmt.Errorf("%w: environment entry without a name", ErrConfig)
		}
	}
	if s.env, err = newStringTable("environment entry", cfg.Env); err != nil {
		return nil, err
	}
	s.openStandard(cfg)
	return s, nil
}

// openStandard fills numbers 0 to 2, and 3 when there are files.
func (s *System) openStandard(cfg Config) {
	stream := func(n int, base rights) *descriptor {
		d := s.fds.slot(n)
		d.base, d.typed = base|stdioRights, true
		return d
	}
	stream(0, rightFDRead).in = newInput(cfg.Stdin)
	stream(1, rightFDWrite).out = orDiscard(cfg.Stdout)
	stream(2, rightFDWrite).out = orDiscard(cfg.Stderr)
	if s.fs == nil {
		return
	}
	d := s.fds.slot(preopenFD)
	d.path = append(d.path, '/')
	d.base, d.inherited = dirRights, allRights
	d.kind, d.typed, d.preopen = TypeDirectory, true, true
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// Close shuts what the guest left open. The guest must have ended.
func (s *System) Close() { s.fds.closeAll() }

// Funcs is every function of WASI preview 1, bound to s.
func (s *System) Funcs() []abi.Func {
	list := functions()
	out := make([]abi.Func, len(list))
	for i, f := range list {
		out[i] = abi.Func{
			Module: Module, Name: f.name,
			Params: f.params(), Results: f.results(),
			Call: s.bind(f.name, f.call), Cost: costOf(f.name), Moved: &s.moved,
		}
	}
	return out
}

// bind turns a method into what an engine calls: the errno is the result,
// unless the run ends here.
func (s *System) bind(name string, call method) func(context.Context, []byte, []uint64) error {
	starting := isStart(name)
	return func(ctx context.Context, mem []byte, stack []uint64) error {
		if !starting {
			*s.begun = true
		}
		errno := call(s, ctx, mem, stack)
		if s.isNone {
			s.tellRejected(name)
		}
		if s.end != nil {
			return s.end
		}
		stack[0] = uint64(errno)
		return nil
	}
}

// isStart reports whether the runtimes of languages make a call before the program
// that they run begins.
func isStart(name string) bool {
	for _, p := range []string{"args_", "environ_", "random_", "fd_fdstat_", "fd_prestat_", "sched_yield", "clock_"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// reject notes that the call under way named a path that can be none.
func (s *System) reject(text []byte, errno Errno) Errno {
	s.isNone, s.none = true, text
	return errno
}

func (s *System) tellRejected(op string) {
	if s.onReject != nil {
		s.onReject(op, s.none)
	}
	s.isNone, s.none = false, nil
}

// stop ends the run with err. Its result is never seen.
func (s *System) stop(err error) Errno {
	s.end = err
	return EIO
}

// useClock lets the caller record that the guest asked for the time.
func (s *System) useClock(op string) bool {
	begun := *s.begun
	if s.onClock == nil || s.clockUsed || s.startsUsed && !begun {
		return true
	}
	s.clockUsed, s.startsUsed = begun, true
	if err := s.onClock(op, !begun); err != nil {
		s.stop(fmt.Errorf("recording %s: %w", op, err))
		return false
	}
	return true
}
