package service

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher"
)

// Options says what [New] makes.
type Options struct {
	Host    Host
	Workers int           // runs at a time; 0: 16 a core
	Queue   int           // runs that wait for a worker; 0: none does
	Grace   time.Duration // how long runs may go on once the service ends
	// TurnIdle is how long a run waits for its next input before it is ended; 0: 10 minutes.
	TurnIdle time.Duration
	Now      func() time.Time // the clock
	Log      *slog.Logger     // nil: nothing is logged
	Retain   int              // ended runs that are kept in memory; 0: 4096
	Watch    Watcher          // nil: nobody
	Kept     int64            // bytes of the reports of ended runs that are kept; 0: 64 MiB
	// Unread is how many bytes of reports there may be that are waited for and not
	// sent yet; 0: 128 MiB, and a quarter of them a caller, whose runs wait beyond it.
	Unread int64
}

// A Watcher is told what happens, in order for each run. It must neither block
// nor call the service.
type Watcher interface {
	// Event is told of each change in the life of a run, whoever's it is.
	Event(e Event)
	// Record is told of the records of a run and of its delegates.
	Record(r *audit.Record)
	// Report is told how a run ended: s is its last state; r is nil if nothing
	// was begun.
	Report(s State, r *launcher.Report)
}

// Load is how much the service has to do, and what it has done since it began.
type Load struct {
	Running  int    `json:"running"`
	Waiting  int    `json:"waiting"`
	Workers  int    `json:"workers"`
	Queue    int    `json:"queue"`
	Done     uint64 `json:"done"`    // runs that ended so
	Refused  uint64 `json:"refused"` // runs that ended so
	Failed   uint64 `json:"failed"`  // runs that ended so
	Busy     uint64 `json:"busy"`    // requests that the queue had no room for
	Draining bool   `json:"draining"`
}

// A Service takes, runs and shows runs. Its methods may be called by several
// goroutines.
type Service struct {
	opt Options

	mu       sync.Mutex
	load     Load
	waiting  *queue
	turning  turning
	watch    watch
	runs     map[string]*Run // by id: under way, or ended lately
	ending   int             // runs that neither wait nor have a worker, and have no end yet
	kept     kept
	unread   *unread
	keyed    repeats
	saidBusy time.Time // when the log was told so last
	pace     pace
	idle     chan struct{} // closed when nothing is under way; nil: nobody waits for it
	events   *feeds
	foreign  map[string]*foreign // runs of other processes that are followed, by tenant and id
}

const (
	defaultRetain = 4096
	perCore       = 16
	defaultIdle   = 10 * time.Minute
)

// New returns a service that takes requests. It has no goroutine of its own
// while nothing is under way.
func New(o Options) *Service {
	if o.Workers <= 0 {
		o.Workers = perCore * runtime.GOMAXPROCS(0)
	}
	if o.Retain <= 0 {
		o.Retain = defaultRetain
	}
	if o.Kept <= 0 {
		o.Kept = mostKept
	}
	if o.Unread <= 0 {
		o.Unread = mostUnread
	}
	if o.TurnIdle <= 0 {
		o.TurnIdle = defaultIdle
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		opt: o, load: Load{Workers: o.Workers, Queue: max(o.Queue, 0)}, waiting: newQueue(), runs: map[string]*Run{},
		keyed: repeats{}, events: newFeeds(o.Now(), o.Watch), foreign: map[string]*foreign{},
	}
	s.unread = &unread{mu: &s.mu, most: o.Unread, shares: NewShares(o.Unread, partOfUnread), begin: func() { begin(s) }}
	return s
}

// Load returns how much there is to do.
func (s *Service) Load() Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.load
	l.Waiting = s.waiting.len()
	return l
}

// now is the time by the service's clock.
func (s *Service) now() Time { return Time{s.opt.Now().UTC()} }

// broke says what broke that is no run's; nil: nothing did.
func (s *Service) broke(what string, err error) {
	var b *guard.Broken
	if errors.As(err, &b) {
		s.opt.Log.LogAttrs(context.Background(), slog.LevelError, "broke", slog.String("what", what),
			slog.String("message", b.What), slog.String("where", string(b.Stack)))
	}
}

// warn logs about a run.
func (s *Service) warn(r *Run, st *State, message string, attrs ...slog.Attr) {
	names := append(NamesOf(r.ctx), slog.String("trace_id", st.TraceID), slog.String("tenant", st.Tenant),
		slog.String("agent", st.Agent))
	s.opt.Log.LogAttrs(context.Background(), slog.LevelError, message, append(names, attrs...)...)
}
