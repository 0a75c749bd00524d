package mcpserver_test

import (
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/serve/mcpserver"
	"runloop.dev/rlp/internal/serve/service"
)

// A caller that does not read the answers of its calls begins no more runs than its
// share of reports allows; another caller does, and when it reads, or is gone, so
// does it. Control: answers that are read at once hold nothing up.
func TestAnswersOfCallsThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, mcpserver.Options{Patience: time.Hour})
		for range 5 { // each report counts 12 MiB, of a share of 32
			b.server.ServeHTTP(httptest.NewRecorder(), calling(t, "loud"))
		}
		var all []*deaf
		var calls sync.WaitGroup
		for range 5 {
			d := newDeaf()
			all = append(all, d)
			calls.Go(func() { b.server.ServeHTTP(d, calling(t, "loud")) })
			synctest.Wait()
		}
		if l := b.service.Load(); l.Done != 8 || l.Waiting != 2 || l.Running != 0 {
			t.Errorf("five calls that nobody reads: %+v", l)
		}
		other := calling(t, "loud")
		other = other.WithContext(service.WithCaller(t.Context(), &service.Caller{
			Name: "user:2", Tenant: "acme",
			May: service.Launch,
		}))
		b.server.ServeHTTP(httptest.NewRecorder(), other)
		for _, d := range all {
			d.once.Do(func() { close(d.late) })
		}
		calls.Wait()
		if l := b.service.Load(); l.Done != 11 || l.Waiting+l.Running != 0 {
			t.Errorf("when they are gone: %+v", l)
		}
	})
}
