package guest

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A Library is where a process keeps what it compiled, so that the runs of one
// module share it: what a run has of its own is its memory and its globals, and
// nothing of them is here. It may be used by many at once.
//
// A module is known by its digest and by whose it is, and found by both or not
// at all. One is made by one, and who else wants it waits. What it all takes is
// bounded, and what was longest not used goes first; what runs stays.
type Library struct {
	most   int64
	memory ceiling // of the runs
	stacks stacks  // of those that have ended

	mu      sync.Mutex
	entries map[libraryKey]*libraryEntry
	held    int64  // by all entries that are made
	uses    uint64 // counted
	closed  bool
}

// libraryKey is what a module is known by.
type libraryKey struct {
	scope, cacheDir, format string
	digest                  string
}

// libraryEntry is one module of a library; mu of the library guards it.
type libraryEntry struct {
	is    libraryKey
	made  chan struct{} // closed when code or err is there
	code  *code         // nil: it is being made, or could not be
	err   error
	users int
	last  uint64
}

// NewLibrary is a library of at most so many bytes of native code, outlines and
// what the engine has beside them, as far as these are known; 0 is
// [DefaultLibrary]. What is in use may be more.
func NewLibrary(most int64) *Library {
	if most <= 0 {
		most = DefaultLibrary
	}
	return &Library{most: most, entries: map[libraryKey]*libraryEntry{}, stacks: stacks{most: mostIdle}}
}

// DefaultLibrary is room for two dozen guests written in Go, or some thousand in C.
const DefaultLibrary = 256 << 20

var errLibraryClosed = errors.New("the library of compiled modules is closed")

// prepare is a module of the library's, made if it is not there.
func (l *Library) prepare(ctx context.Context, cfg *Config) (*Module, error) {
	is := libraryKey{scope: cfg.Scope, cacheDir: cfg.CacheDir, format: cacheFormat(), digest: cfg.digest()}
	for {
		s, mine, err := l.borrow(is)
		if err != nil {
			return nil, err
		}
		if mine {
			l.make(ctx, s, cfg)
			if s.err != nil {
				return nil, s.err
			}
			return cfg.module(s.code, s.code.cache.used, l.back(s)), nil
		}
		select {
		case <-s.made:
		case <-ctx.Done():
			_ = l.release(s)
			return nil, context.Cause(ctx)
		}
		if s.err == nil {
			return l.known(s, cfg)
		}
		if errors.Is(s.err, ErrModule) {
			return nil, s.err
		}
		// Who made it gave up, or could not for a reason that is not the module's.
	}
}

// known is a module that is there, as far as what it imports is in cfg.Funcs.
func (l *Library) known(s *libraryEntry, cfg *Config) (*Module, error) {
	m := cfg.module(s.code, true, l.back(s))
	if err := m.link(cfg.Funcs); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// borrow finds a module and counts one more user of it. It is mine to make if
// nobody has or does.
func (l *Library) borrow(is libraryKey) (s *libraryEntry, mine bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, false, errLibraryClosed
	}
	s, there := l.entries[is]
	if !there {
		s = &libraryEntry{is: is, made: make(chan struct{})}
		l.entries[is] = s
	}
	s.users++
	return s, !there, nil
}

// make makes what s is to be. One that cannot be made is forgotten.
func (l *Library) make(ctx context.Context, s *libraryEntry, cfg *Config) {
	err := fmt.Errorf("%w: compiling it did not end", ErrCompiler) // should newCode panic
	var c *code
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		defer close(s.made)
		if s.code, s.err = c, err; err != nil {
			s.users--
			delete(l.entries, s.is)
			return
		}
		l.held += c.size
		l.evict()
	}()
	c, err = newCode(ctx, cfg)
}

// back gives s back.
func (l *Library) back(s *libraryEntry) func() error { return func() error { return l.release(s) } }

// release counts one user less. What nobody uses is freed when there is no room,
// or the library is closed.
func (l *Library) release(s *libraryEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.users--
	l.uses++
	s.last = l.uses
	return l.evict()
}

func (l *Library) evict() error {
	var err error
	for l.held > l.most || l.closed {
		oldest := l.oldest()
		if oldest == nil {
			break
		}
		delete(l.entries, oldest.is)
		l.held -= oldest.code.size
		err = errors.Join(err, oldest.code.close())
	}
	return err
}

// oldest is what was longest not used, of what is not in use; nil: there is none.
func (l *Library) oldest() *libraryEntry {
	var oldest *libraryEntry
	for _, s := range l.entries {
		if s.users == 0 && s.code != nil && (oldest == nil || s.last < oldest.last) {
			oldest = s
		}
	}
	return oldest
}

// Held is how much the library takes, and how many modules it has.
func (l *Library) Held() (bytes int64, modules int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held, len(l.entries)
}

// Close frees what is not in use, and what is as soon as it is not any more.
// Nothing is to be had of the library then.
func (l *Library) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.stacks.keep(0)
	return l.evict()
}
