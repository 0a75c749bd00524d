package guest

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What the host waits for a person is not the guest's time; everything else is,
// and the deadline comes when that is over, to the moment.
//
//rlp:holds K23
func TestWaitingForAPersonIsNotTheGuestsTime(t *testing.T) {
	for name, c := range map[string]struct {
		stop bool
		rang time.Duration // after the beginning
	}{
		"waits for a person":                      {true, time.Hour + 10*time.Second},
		"control: waits for something of its own": {false, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, rang := time.Now(), atomic.Int64{}
				w := &stopwatch{given: 10 * time.Second, over: func(time.Duration) {
					rang.CompareAndSwap(0,
						int64(time.Since(began)))
				}}
				w.start()
				time.Sleep(4 * time.Second)
				if c.stop {
					goOn := w.Stop()
					w.Stop()() // a second one changes nothing
					time.Sleep(time.Hour)
					w.look()
					goOn()
					goOn()
				}
				time.Sleep(2 * time.Hour)
				w.end()
				if got := time.Duration(rang.Load()); got != c.rang {
					t.Errorf("rang after %v, want %v", got, c.rang)
				}
				if _, waited := w.read(); c.stop != (waited == time.Hour) {
					t.Errorf("waited %v", waited)
				}
			})
		})
	}
}

// A wall time is lowered, and raised again to what it was and no further, whether
// the clock goes or not.
func TestALowerWallTimeHolds(t *testing.T) {
	for name, c := range map[string]struct {
		to, rang time.Duration
		waiting  bool
		then     time.Duration
	}{
		"less":                {to: 6 * time.Second, rang: 6 * time.Second},
		"less than is over":   {to: time.Second, rang: 4 * time.Second},
		"more":                {to: time.Hour, rang: 10 * time.Second},
		"less and back again": {to: 6 * time.Second, then: time.Hour, rang: 10 * time.Second},
		"less while it waits": {to: 5 * time.Second, rang: 6 * time.Second, waiting: true}, // a second of waiting
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, rang := time.Now(), atomic.Int64{}
				w := &stopwatch{given: 10 * time.Second, over: func(time.Duration) {
					rang.CompareAndSwap(0,
						int64(time.Since(began)))
				}}
				w.start()
				time.Sleep(4 * time.Second)
				goOn := func() {}
				if c.waiting {
					goOn = w.Stop()
				}
				w.Bound(c.to)
				if c.then > 0 {
					w.Bound(c.then)
				}
				if c.waiting {
					time.Sleep(time.Second)
				}
				goOn()
				time.Sleep(3 * time.Hour)
				w.end()
				if got := time.Duration(rang.Load()); got != c.rang {
					t.Errorf("rang after %v, want %v", got, c.rang)
				}
			})
		})
	}
}

// A run that was launched by another one stops both clocks, and both go on.
func TestBothClocksStopForAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, rang := time.Now(), atomic.Int64{}
		above := &stopwatch{given: 10 * time.Second, over: func(time.Duration) {
			rang.CompareAndSwap(0,
				int64(time.Since(began)))
		}}
		above.start()
		below := &stopwatch{given: 5 * time.Second, above: above, over: func(time.Duration) {}}
		below.start()
		goOn := below.Stop()
		time.Sleep(time.Hour)
		goOn()
		time.Sleep(2 * time.Hour)
		above.end()
		if got := time.Duration(rang.Load()); got != time.Hour+10*time.Second {
			t.Errorf("rang after %v", got)
		}
	})
}
