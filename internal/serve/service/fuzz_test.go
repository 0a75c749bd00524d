package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// A machine is a service, and what must be true of it whatever is done.
type machine struct {
	t       *testing.T
	s       *service.Service
	workers int
	queue   int
	runs    []*service.Run    // that were taken, in order
	byID    map[string]string // the caller of each
	drained chan error

	mu       sync.Mutex
	launched []string               // ids, in order
	active   map[string]chan string // by id: says how it ends
	stubborn map[string]bool        // they do not end when they are cancelled
}

func newMachine(t *testing.T, workers, queue int) *machine {
	m := &machine{
		t: t, workers: workers, queue: queue, byID: map[string]string{}, active: map[string]chan string{},
		stubborn: map[string]bool{},
	}
	m.s = serve(&host{launch: m.launch}, service.Options{Workers: workers, Queue: queue, Grace: time.Second})
	return m
}

func (m *machine) launch(ctx context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
	end := make(chan string, 1)
	m.mu.Lock()
	m.launched = append(m.launched, b.RunID)
	m.active[b.RunID] = end
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.active, b.RunID)
	}()
	cancelled := ctx.Done()
	if q.Agent == "stubborn" {
		cancelled = nil
	}
	select {
	case how := <-end:
		switch how {
		case "panic":
			panic(how)
		case "refused":
			return nil, &service.ViolationError{}
		case "failed":
			return nil, errors.New(how)
		}
		return report("", q, b, launcher.OK), nil
	case <-cancelled:
		return report("", q, b, launcher.Cancelled), nil
	}
}

// do does one thing that a byte stands for.
func (m *machine) do(op byte) {
	arg := int(op >> 3)
	switch op & 7 {
	case 0, 1, 2:
		who := caller(fmt.Sprint("c", arg%3), fmt.Sprint("t", arg%2))
		q := ask([]string{"a", "stubborn"}[arg/8%2])
		key := ""
		if arg&4 != 0 {
			key = fmt.Sprint("k", arg%5)
		}
		m.submit(who, q, key)
	case 3:
		if len(m.runs) > 0 {
			r := m.runs[arg%len(m.runs)]
			if err := m.s.Cancel(m.t.Context(), caller("op", r.State().Tenant), r.ID()); err != nil {
				m.t.Errorf("cancelling: %v", err)
			}
		}
	case 4, 5, 6:
		m.finish(arg, []string{"ok", "panic", "refused", "failed"}[arg%4])
	case 7:
		if arg == 31 && m.drained == nil {
			m.drained = make(chan error, 1)
			go func() { m.drained <- m.s.Drain(context.Background()) }()
		}
		if arg == 30 {
			<-time.After(600 * time.Millisecond) // of the bubble
		}
	}
}

func (m *machine) submit(who *service.Caller, q *service.Request, key string) {
	r, err := m.s.Submit(m.t.Context(), who, q, key)
	var busy *service.BusyError
	switch {
	case err == nil:
		if m.byID[r.ID()] == "" {
			m.runs = append(m.runs, r)
			m.byID[r.ID()] = who.Tenant + who.Name
		} else if key == "" {
			m.t.Errorf("run %s was given out twice", r.ID())
		}
	case errors.As(err, &busy):
		if l := m.s.Load(); l.Running != m.workers || l.Waiting < m.queue-m.queue/8 {
			m.t.Errorf("busy with %+v", l)
		}
	case errors.Is(err, service.ErrDraining):
		if m.drained == nil {
			m.t.Error("it drains by itself")
		}
	case !errors.Is(err, service.ErrConflict):
		m.t.Errorf("submitting: %v", err)
	}
}

// finish ends one of the launches.
func (m *machine) finish(n int, how string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.active) == 0 {
		return
	}
	n %= len(m.active)
	for _, id := range m.launched { // in the order of their beginning
		if end := m.active[id]; end != nil {
			if n == 0 {
				select {
				case end <- how:
				default:
				}
				return
			}
			n--
		}
	}
}

// check is what is true whenever nothing moves.
func (m *machine) check() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.s.Load()
	if l.Running > m.workers || l.Running != len(m.active) || l.Waiting > m.queue || l.Waiting > 0 &&
		l.Running < m.workers {
		m.t.Errorf("%d are active: %+v", len(m.active), l)
	}
	count := map[string]int{}
	for _, r := range m.runs {
		st := r.State()
		count[st.State]++
		over := false
		select {
		case <-r.Done():
			over = true
		default:
		}
		if over != st.Ended() || m.active[r.ID()] != nil && st.State != service.Running {
			m.t.Errorf("over %v: %+v", over, st)
		}
		if rep, err := r.Report(new(service.Caller)); over && (rep == nil) == (err == nil) {
			m.t.Errorf("report %v, %v", rep, err)
		}
	}
	if count[service.Queued] != l.Waiting || count[service.Running] != l.Running ||
		uint64(count[service.Done]) != l.Done || uint64(count[service.Refused]) != l.Refused ||
		uint64(count[service.Failed]) != l.Failed {
		m.t.Errorf("states %v, load %+v", count, l)
	}
	m.ordered()
}

// ordered checks that nothing is launched twice, and that the runs of a caller are
// in the order in which it asked.
func (m *machine) ordered() {
	m.t.Helper()
	last := map[string]string{}
	for _, id := range m.launched {
		who := m.byID[id]
		if who != "" && id <= last[who] {
			m.t.Errorf("%s was launched after %s", id, last[who])
		}
		last[who] = id
	}
}

// end lets everything end, and nothing is lost.
func (m *machine) end() {
	if m.drained == nil {
		m.do(31<<3 | 7)
	}
	<-time.After(2 * time.Second) // the grace is over
	synctest.Wait()
	for range m.runs {
		m.finish(0, "ok") // the stubborn ones
		synctest.Wait()
	}
	if err := <-m.drained; err != nil {
		m.t.Error(err)
	}
	synctest.Wait()
	m.check()
	if l := m.s.Load(); l.Done+l.Refused+l.Failed != uint64(len(m.runs)) || l.Running+l.Waiting != 0 {
		m.t.Errorf("%d runs were taken: %+v", len(m.runs), l)
	}
}

// Whatever is asked in whatever order: never more runs than workers, no worker rests
// while a run waits, each run ends exactly once, and nothing is lost.
//
//rlp:holds A53
func FuzzTheLifeOfRuns(f *testing.F) {
	f.Add(byte(1), byte(1), []byte{0, 0, 0, 4, 3, 0xff, 0})
	f.Add(byte(2), byte(4), []byte{0, 8, 16, 24, 0, 0, 0, 12, 20, 28, 36, 3, 11, 19, 0xf7, 0xff, 0xf7})
	f.Add(byte(3), byte(0), []byte(strings.Repeat("\x00\x41\x22\x03\x0c", 20)))
	f.Add(byte(1), byte(16), []byte(strings.Repeat("\x00\x08\x10\x18\x20\x40", 6)+"\xff\x03\x0b\x04\x0c\x14\x1c\xf7\xf7"))
	f.Fuzz(func(t *testing.T, workers, queue byte, ops []byte) {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t, int(workers%4)+1, int(queue%32))
			for _, op := range ops[:min(len(ops), 200)] {
				m.do(op)
				synctest.Wait()
				m.check()
			}
			m.end()
		})
	})
}
