package run

import (
	"fmt"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/engine/guest/hostiletest"
)

// An agent that waits for its next turn takes less than 100 KiB, two files and no
// thread, and attacks that share the process and the library with it end as they
// do alone: with the same status, after the same fuel.
//
//rlp:holds K27 K73
func TestIdleAgents(t *testing.T) {
	c, n := newIdleAgents(t, []byte(waiting)), 150
	if testing.Short() {
		n = 10
	}
	c.enter(0, 8) // what the first ones make is there for all
	before := measure(t)
	c.enter(8, 8+n)
	more := measure(t).less(before)
	if files, goroutines := more.files, more.goroutines; files > 2*n || goroutines > 2*n+8 || more.threads > 8 {
		t.Errorf("%d agents wait with %d files, %d goroutines and %d threads more", n, files, goroutines, more.threads)
	}
	if each := (more.pss + more.tables) / n; !testing.Short() && each >= 100 { // the race detector has memory of its own
		t.Errorf("each takes %d KiB: %+v", each, more)
	}
	c.attack(1000)
	c.end()
}

// attack launches attacks alone and beside the idle agents.
func (c *idleAgents) attack(id int) {
	bounded := caps.Limits{}.With(caps.CPUFuel, 100_000).With(caps.MemoryBytes, 64<<20)
	list := hostiletest.Runs()
	if testing.Short() {
		list = list[:4]
	}
	statuses := map[int]bool{}
	for _, a := range list {
		wasm := a.Bytes()
		launch := func(lib *guest.Library) string {
			id++
			s := c.spec(id)
			s.Module, s.Inputs, s.Library, s.Policy.BaseLimits = wasm, nil, lib, bounded
			r := Launch(c.t.Context(), s)
			statuses[r.ExitCode] = true
			return fmt.Sprint(r.Outcome, r.ExitCode, r.Usage.Fuel, r.Usage.MemoryBytes, r.Message)
		}
		alone := launch(nil)
		for range 2 {
			if beside := launch(c.library); beside != alone {
				c.t.Errorf("%s: alone %s, beside others %s", a.Name, alone, beside)
			}
		}
	}
	for _, want := range []int{StatusFuel, StatusMemory, StatusFinding} {
		if !testing.Short() && !statuses[want] {
			c.t.Errorf("control: no attack ended with %d", want)
		}
	}
}
