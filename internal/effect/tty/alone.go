package tty

import (
	"context"
	"errors"
	"sync"
)

// ErrPiped is what [Alone] returns while a program's output goes through a pipe.
var ErrPiped = errors.New("what the program writes goes through a pipe, and who reads that may write to the terminal, too")

// A screen is the terminal of this process as programs and questions share it: like
// the process, there is one.
type screen struct {
	use sync.RWMutex // held for each piece that is passed, and alone by whoever asks

	mu    sync.Mutex
	held  map[holder]bool
	piped int // programs whose output goes through a pipe
}

// A holder has the terminal while a program runs.
type holder interface {
	lend()
	retake()
}

var own = sync.OnceValue(func() *screen { return &screen{held: map[holder]bool{}} })

func (s *screen) add(h holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[h] = true
}

func (s *screen) remove(h holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, h)
}

// Pipe says that a program's output goes through a pipe until end is called.
func Pipe() (end func()) {
	s := own()
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.piped += n
	}
	count(1)
	return sync.OnceFunc(func() { count(-1) })
}

// Pass does one step of what a program reads or writes, which takes no time. It
// does not while somebody is asked, and says so.
func Pass(do func()) bool {
	s := own()
	if !s.use.TryRLock() {
		return false
	}
	defer s.use.RUnlock()
	do()
	return true
}

// Alone has do speak with the person at the terminal of this process. Nothing that a
// program writes is shown meanwhile, nothing that is typed reaches one, and the
// terminal's modes are those that it had before. Where that cannot be, do is
// not called, and the error says why.
func Alone(ctx context.Context, do func()) error {
	s := own()
	got := make(chan struct{})
	go func() {
		s.use.Lock()
		close(got)
	}()
	select {
	case <-got:
		defer s.use.Unlock()
	case <-ctx.Done():
		go func() {
			<-got
			s.use.Unlock()
		}()
		return ctx.Err()
	}
	held, piped := s.now()
	if piped {
		return ErrPiped
	}
	for _, h := range held {
		h.lend()
		defer h.retake()
	}
	do()
	return nil
}

func (s *screen) now() (held []holder, piped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.held {
		held = append(held, h)
	}
	return held, s.piped > 0
}
