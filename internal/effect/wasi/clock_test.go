package wasi_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/wasi"
)

func TestVirtualClockTellsOnlyWhatTheGuestDid(t *testing.T) {
	start := uint64(time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	for range 2 { // every run the same
		c := wasi.NewVirtualClock()
		for i := range uint64(3) {
			if ns, errno := c.Now(wasi.Realtime); errno != 0 || ns != start+2*i*1000+1000 {
				t.Errorf("reading %d is %d", i, ns-start)
			}
			if ns, _ := c.Now(wasi.Monotonic); ns != 2*i*1000+2000 {
				t.Errorf("monotonic reading %d is %d", i, ns)
			}
		}
		began := time.Now()
		if err := c.Sleep(context.Background(), time.Hour); err != nil || time.Since(began) > time.Minute {
			t.Errorf("an hour took %s, %v", time.Since(began), err)
		}
		if ns, _ := c.Now(wasi.Monotonic); ns != uint64(time.Hour)+7000 {
			t.Errorf("after an hour it is %d", ns)
		}
	}
}

// A clock that goes on from another goes on from what that one said.
func TestVirtualClockGoesOn(t *testing.T) {
	start := uint64(time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	for _, c := range []struct{ realtime, monotonic, wantReal, wantMonotonic uint64 }{
		{0, 0, start + 1000, 2000},
		{start + 5e9, 7e9, start + 5e9 + 1000, 7e9 + 2000},
		{5, 7, 5 + 2 + 1000, 7 + 2000}, // since the run began is never before 1970
	} {
		clock := wasi.NewVirtualClockAt(c.realtime, c.monotonic)
		realtime, _ := clock.Now(wasi.Realtime)
		monotonic, _ := clock.Now(wasi.Monotonic)
		if realtime != c.wantReal || monotonic != c.wantMonotonic {
			t.Errorf("%+v: %d and %d", c, realtime, monotonic)
		}
	}
}

func TestVirtualClockNeverWraps(t *testing.T) {
	c := wasi.NewVirtualClock()
	last := uint64(0)
	for range 4 {
		_ = c.Sleep(context.Background(), math.MaxInt64)
		now, _ := c.Now(wasi.Realtime)
		if now < last || now > math.MaxInt64 {
			t.Fatalf("%d after %d", now, last)
		}
		last = now
	}
}

func TestClocksKnowTheirNumbers(t *testing.T) {
	for name, c := range map[string]wasi.Clock{"virtual": wasi.NewVirtualClock(), "real": wasi.NewRealClock()} {
		for id := range wasi.ClockID(4) {
			a, errno := c.Now(id)
			b, errno2 := c.Now(id)
			if errno != 0 || errno2 != 0 || a == 0 || b < a {
				t.Errorf("%s clock %d: %d, %d", name, id, a, b)
			}
			if res, errno := c.Res(id); errno != 0 || res == 0 {
				t.Errorf("%s resolution %d: %d, %v", name, id, res, errno)
			}
		}
		_, errno := c.Now(4)
		_, errno2 := c.Res(4)
		if errno != wasi.EINVAL || errno2 != wasi.EINVAL {
			t.Errorf("%s: %v, %v", name, errno, errno2)
		}
	}
}

func TestRealClock(t *testing.T) {
	c := wasi.NewRealClock()
	before := uint64(time.Now().UnixNano())
	now, _ := c.Now(wasi.Realtime)
	if after := uint64(time.Now().UnixNano()); now < before || now > after {
		t.Errorf("%d is not between %d and %d", now, before, after)
	}
	a, _ := c.Now(wasi.Monotonic)
	if a > uint64(time.Hour) {
		t.Errorf("%d ns since the start", a)
	}
	if err := c.Sleep(context.Background(), 2*time.Millisecond); err != nil {
		t.Error(err)
	}
	if b, _ := c.Now(wasi.Monotonic); b-a < uint64(2*time.Millisecond) {
		t.Errorf("slept %d ns", b-a)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	over := errors.New("over")
	cancel(over)
	for range 100 { // of two that are ready, either may be seen first
		for _, d := range []time.Duration{time.Hour, 0} {
			if err := c.Sleep(ctx, d); !errors.Is(err, over) {
				t.Fatalf("sleeping %s after the end: %v", d, err)
			}
		}
	}
	if err := wasi.NewVirtualClock().Sleep(ctx, time.Hour); !errors.Is(err, over) {
		t.Errorf("a virtual clock, after the end: %v", err)
	}
}

func TestClockFunctions(t *testing.T) {
	g := newBareGuest(t, wasi.Config{})
	g.ok("clock_time_get", 1, 0, atOut)
	if g.u64(atOut) != 1000 {
		t.Errorf("it is %d", g.u64(atOut))
	}
	g.ok("clock_res_get", 0, atData)
	if g.u64(atData) != 1000 {
		t.Errorf("resolution is %d", g.u64(atData))
	}
	g.unchanged(func() {
		g.want(wasi.EINVAL, "clock_time_get", 4, 0, atOut)
		g.want(wasi.EINVAL, "clock_res_get", 1<<32-1, atOut)
		g.want(wasi.EFAULT, "clock_time_get", 0, 0, page-7)
		g.want(wasi.EFAULT, "clock_res_get", 0, far)
	})
}

func TestUseOfTheClockIsToldOnce(t *testing.T) {
	var told []string
	cfg := wasi.Config{OnClock: func(op string, atStart bool) error {
		told = append(told, fmt.Sprint(op, atStart))
		return nil
	}}
	g := newBareGuest(t, cfg)
	g.ok("random_get", 0, 1)
	g.want(wasi.EFAULT, "clock_time_get", 0, 0, far)
	if len(told) != 0 {
		t.Errorf("told %v before any use", told)
	}
	g.ok("clock_time_get", 0, 0, atOut)
	g.ok("clock_time_get", 0, 0, atOut)
	g.ok("clock_res_get", 0, atOut)
	if len(told) != 1 || told[0] != "clock_time_gettrue" {
		t.Errorf("told %v", told)
	}
	for range 2 { // the program begins, which is not told
		g.ok("fd_filestat_get", 0, atOut)
		g.ok("clock_res_get", 0, atOut)
	}
	if len(told) != 2 || told[1] != "clock_res_getfalse" {
		t.Errorf("begun: told %v", told)
	}
}

func TestAUseThatCannotBeToldEndsTheRun(t *testing.T) {
	full := errors.New("disk full")
	for name, args := range map[string][]uint64{
		"clock_time_get": {0, 0, atOut}, "clock_res_get": {0, atOut}, "poll_oneoff": {atPath, atData, 1, atOut},
	} {
		g := newBareGuest(t, wasi.Config{OnClock: func(string, bool) error { return full }})
		g.unchanged(func() {
			if _, err := g.try(name, args...); !errors.Is(err, full) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
