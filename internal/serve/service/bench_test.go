package service_test

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/launcher"
)

// BenchmarkSubmit is what the service costs over the host's own launch, which here
// does nothing: from the request to its report.
func BenchmarkSubmit(b *testing.B) {
	h := &host{}
	c, q := caller("ann", "t"), ask("a")
	b.Run("direct", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h.Launch(b.Context(), c, q, service.Begin{RunID: "x"}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("service", func(b *testing.B) {
		s := serve(h, service.Options{Workers: 4, Queue: 2048})
		b.ReportAllocs()
		for b.Loop() {
			r, err := s.Submit(b.Context(), c, q, "")
			if err != nil {
				b.Fatal(err)
			}
			<-r.Done()
			if _, err := r.Report(new(service.Caller)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("service1000", func(b *testing.B) { // at a time
		s := serve(h, service.Options{Workers: 32, Queue: 2048})
		b.SetParallelism(500)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				r, err := s.Submit(context.Background(), c, q, "")
				if err != nil {
					b.Error(err)
					return
				}
				<-r.Done()
			}
		})
	})
}

// shown is a run that records a decision every so often, in a journal as launches
// have it, and when it made each.
type shown struct {
	made []time.Time // by number in the run
	mu   sync.Mutex
}

func (k *shown) at(n uint64) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.made[n-1]
}

func (k *shown) launch(dir string, records int, every time.Duration, begin service.Begin) error {
	j, err := journal.Create(journal.Options{
		Dir: dir, Head: audit.Head{RunID: begin.RunID, Tenant: kb.DefaultTenant, Agent: "a"},
		Events: true, Observe: func(r *audit.Record) bool { begin.Record(r); return true },
	})
	if err != nil {
		return err
	}
	note := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.made = append(k.made, time.Now())
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := range records {
		<-tick.C
		e := &audit.Event{Kind: audit.KindCallDone, Verb: "fs_read", Status: "ok"}
		if i == records-1 {
			e = &audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}
		}
		note()
		if err := j.Event(e); err != nil {
			return err
		}
	}
	return j.Close()
}

// lagging has many follow a run of so many records from its beginning, without a
// gap, and returns how far behind each record each was, sorted.
func lagging(t testing.TB, followers, records int, every time.Duration) []time.Duration {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	store, err := kb.Open(t.Context(), kb.Options{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	dir, err := kb.JournalDir(home, "")
	if err != nil {
		t.Fatal(err)
	}
	k := &shown{}
	h := &host{log: store, launch: func(_ context.Context, q *service.Request, begin service.Begin) (*launcher.Report,
		error,
	) {
		return report("", q, begin, launcher.OK), k.launch(dir, records, every, begin)
	}}
	s := serve(h, service.Options{Workers: 1})
	c := caller("ann", kb.DefaultTenant)
	r := submit(t, s, c, ask("a"))
	var all sync.WaitGroup
	var mu sync.Mutex
	var lags []time.Duration
	for range followers {
		all.Go(func() {
			own := make([]time.Duration, 0, records)
			n := uint64(0)
			for rec, err := range s.Records(t.Context(), c, r.ID(), 0) {
				if n++; err != nil || rec.RunSeq != n {
					t.Errorf("record %d where %d belongs: %v", rec.RunSeq, n, err)
					return
				}
				own = append(own, time.Since(k.at(n)))
			}
			if n != uint64(records) {
				t.Errorf("%d records", n)
			}
			mu.Lock()
			defer mu.Unlock()
			lags = append(lags, own...)
		})
	}
	all.Wait()
	slices.Sort(lags)
	return lags
}

// Fifty who follow a run that writes a journal as launches do see all of it, and
// soon. How soon is BenchmarkFollowers' to say: here others use the machine.
func TestFiftyFollowers(t *testing.T) {
	lags := lagging(t, 50, 100, 2*time.Millisecond)
	if t.Failed() {
		return
	}
	if p50 := lags[len(lags)/2]; p50 > 200*time.Millisecond {
		t.Errorf("they are %v behind at the median", p50)
	}
}

// BenchmarkFollowers is how far 50 followers of a run are behind its records: from
// before a record is made until a follower has its line.
func BenchmarkFollowers(b *testing.B) {
	var lags []time.Duration
	for b.Loop() {
		lags = append(lags, lagging(b, 50, 300, 3*time.Millisecond)...)
	}
	slices.Sort(lags)
	ms := func(p int) float64 { return float64(lags[min(len(lags)*p/100, len(lags)-1)].Microseconds()) / 1000 }
	b.ReportMetric(ms(50), "p50-ms")
	b.ReportMetric(ms(99), "p99-ms")
	b.ReportMetric(0, "ns/op")
}
