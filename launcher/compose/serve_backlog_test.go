package compose

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
)

// Launches of a tenant wait while too many of its journals do, until some are
// taken in or nobody waits for the launch any more; other tenants go on.
func TestLaunchesWaitForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStores(t.Context(), io.Discard)
		s.waiting["a"] = mostWaiting
		s.wait(t.Context(), "b") // control
		passed := make(chan struct{})
		go func() { s.wait(t.Context(), "a"); close(passed) }()
		synctest.Wait()
		select {
		case <-passed:
			t.Fatal("a launch does not wait")
		default:
		}
		if s.Backlog() != mostWaiting {
			t.Errorf("%d wait", s.Backlog())
		}
		s.mu.Lock()
		s.took("a", 1)
		s.mu.Unlock()
		<-passed
		s.waiting["a"] = mostWaiting
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("nobody waits"))
		s.wait(gone, "a")
		s.forget("a")
		if s.Backlog() != 0 {
			t.Errorf("%d wait in the end", s.Backlog())
		}
	})
}
