package journal

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A clock that nobody looks at keeps no processor awake, and is right when
// somebody does.
func TestAClockSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looked atomic.Int64
		c := NewClock(func() time.Time { looked.Add(1); return time.Now() })
		right := func(when string) {
			t.Helper()
			if off := time.Now().UnixMilli() - c.UnixMilli(); off < 0 || off > 2 {
				t.Errorf("%s it is %d ms late", when, off)
			}
		}
		for range 100 { // control: it is followed while it is read
			time.Sleep(time.Millisecond)
			right("read all the time")
		}
		if n := looked.Load(); n < 90 {
			t.Errorf("followed %d times in 100 ms", n)
		}
		time.Sleep(time.Second)
		before := looked.Load()
		time.Sleep(time.Hour)
		if n := looked.Load() - before; n != 0 {
			t.Errorf("nobody reads it, and it was followed %d times in an hour", n)
		}
		for range 3 {
			right("after an hour")
			time.Sleep(20 * time.Millisecond)
			right("awake again")
			time.Sleep(time.Hour)
		}
		c.Stop()
		synctest.Wait()
		stood := c.UnixMilli()
		time.Sleep(time.Hour)
		if c.UnixMilli() != stood || time.Now().UnixMilli()-stood != time.Hour.Milliseconds() {
			t.Errorf("stopped asleep, it went on, or stands at another time than it was stopped")
		}
	})
}

// A decision that wakes the clock is stamped with the time like any other, and
// so is one that only repeats it.
func TestADecisionWakesTheClock(t *testing.T) {
	folder := dir(t)
	c := &Clock{now: time.Now, wake: make(chan struct{}, 1)}
	c.ms.Store(asleep)
	j := create1(t, Options{Dir: folder, Head: testHead("run1"), Clock: c})
	d := words(t, j)
	before := time.Now().UnixMilli()
	for range 2 {
		c.ms.Store(asleep)
		decide(t, j, &d)
	}
	c.ms.Store(asleep)
	if !j.Again(j.whole) {
		t.Fatal("not once more")
	}
	got := records(t, folder, "run1")
	if len(got) != 3 {
		t.Fatalf("%d records, want 3", len(got))
	}
	for i, r := range got {
		if at := r.Time.UnixMilli(); at < before || at > time.Now().UnixMilli() {
			t.Errorf("record %d is of %v", i, r.Time)
		}
	}
}
