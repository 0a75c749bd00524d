package wasi

import (
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"
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
	// Begun reports whether the guest has made a call beside these, which is no part
	// of a language's own start. It is asked when the time is. Nil: there are none.
	Begun func() bool

	// OnReject is called for each call that is refused because of a path that can
	// be none: nothing, with a NUL, too long, not UTF-8 or above the root. The FS
	// is not asked then. The text is a view of the guest's memory.
	OnReject func(op string, text []byte)

	MaxFiles int // open descriptors; 0 is DefaultMaxFiles
}

// A System is WASI as one run sees it. It belongs to one guest, and the guest
// is one thread: nothing here is for concurrent use.
type System struct {
	fs     FS
	clock  Clock
	random io.Reader
	fds    table

	args, env stringTable

	onClock    func(op string, atStart bool) error
	elsewhere  func() bool // Begun
	begun      bool        // by a call of these
	clockUsed  bool        // since the run has begun
	startsUsed bool        // before

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
	if s.elsewhere = cfg.Begun; s.elsewhere == nil {
		s.elsewhere = func() bool { return false }
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
	if s.onClock == nil || s.clockUsed {
		return true
	}
	begun := s.begun || s.elsewhere()
	if s.startsUsed && !begun {
		return true
	}
	s.clockUsed, s.startsUsed = begun, true
	if err := s.onClock(op, !begun); err != nil {
		s.stop(fmt.Errorf("recording %s: %w", op, err))
		return false
	}
	return true
}

// move counts bytes that a call took from the guest or gave it.
func (s *System) move(n int) { s.moved += int64(n) }

// event is one answer of poll_oneoff, or what it is to become.
type event struct {
	userdata uint64
	kind     byte
	ready    bool
	errno    Errno
	nbytes   uint64
	flags    uint16
	after    time.Duration // a clock's, when not ready
	in       *input        // a stream's, when not ready
}
