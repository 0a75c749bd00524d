package run

import (
	"context"
	"fmt"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/wasi"
)

var (
	timeRequest  = caps.Request{Family: caps.Time, Name: "*"}
	clockRequest = caps.Request{Family: caps.Tool, Name: "time:" + clockOp}
)

const clockOp = "clock_time_get"

// clock is the real one with time, a virtual one without; either way the first
// use is recorded, once a run. What a language's own start is denied is noted beside.
func (r *run) clock() (wasi.Clock, func(op string, atStart bool) error) {
	d, scope := r.plan.Effective.Check(timeRequest), int32(0)
	if scope = d.Scope; d.Allow {
		d = r.plan.Effective.Check(clockRequest)
	}
	if !d.Allow {
		return wasi.NewVirtualClock(), func(op string, atStart bool) error {
			if !atStart {
				return r.clockUsed(op)
			}
			n := gate.Note{Cap: caps.AuditName(caps.Time, 0), Op: op, Code: d.Code, AtStart: true}
			if d.Layer > 0 {
				n.Layer = r.plan.Effective.LayerName(d.Layer)
			}
			return r.gate.Note(n)
		}
	}
	c, started := &heldClock{run: r, real: wasi.NewRealClock(), scope: scope}, false
	return c, func(op string, atStart bool) error {
		if started { // and the first use was recorded
			return nil
		}
		started = atStart
		return c.used(op)
	}
}

// clockUsed records the decision on a clock for the host call of that name.
func (r *run) clockUsed(name string) error {
	_, err := r.clockAdmitted(name)
	return err
}

func (r *run) clockAdmitted(name string) (bool, error) {
	op, err := r.gate.Op(name)
	if err != nil {
		return false, fmt.Errorf("recording %s: %w", name, err)
	}
	ok := r.gate.Admit(op, timeRequest, "", nil).OK()
	return ok, r.gate.Err()
}

// heldClock is the real clock for as long as the run holds time. When that is
// taken away it stands still where it was and goes on by what the guest does; it
// never goes back.
type heldClock struct {
	run   *run
	real  wasi.Clock
	scope int32

	generation int64 // that hidden is of
	hidden     bool
	refused    bool       // what the record of its use says: a lease or a limit is no matter of what is held
	said       [2]uint64  // realtime and monotonic, last
	still      wasi.Clock // nil while time is held
}

// used records the first use; the guest sees what the record says.
func (c *heldClock) used(name string) error {
	ok, err := c.run.clockAdmitted(name)
	c.refused = !ok
	return err
}

// now is the clock of this moment. That time was taken away is recorded when
// the guest next looks at it.
func (c *heldClock) now() wasi.Clock {
	if g := c.run.gate; c.generation != g.Generation() {
		c.generation, c.hidden = g.Generation(), !g.Set().Check(clockRequest).Allow
		if c.refused && c.still != nil {
			_ = c.used(clockOp)
		}
	}
	if !c.hidden && !c.refused && c.run.gate.Holds(c.scope, caps.Time, 0) {
		c.still = nil
		return c.real
	}
	if c.still == nil {
		c.still = wasi.NewVirtualClockAt(c.said[0], c.said[1])
		if c.refused {
			return c.still // which is recorded already
		}
		_ = c.run.clockUsed(clockOp) // what cannot be recorded shuts the gate, which ends the run
	}
	return c.still
}

// Now is the time, never before what was said before.
func (c *heldClock) Now(id wasi.ClockID) (uint64, wasi.Errno) {
	ns, errno := c.now().Now(id)
	if errno != wasi.Success {
		return ns, errno
	}
	said := &c.said[min(id, wasi.Monotonic)]
	if id != wasi.Realtime {
		ns = max(ns, *said)
	}
	*said = ns
	return ns, errno
}

// Res is the resolution of the clock of this moment.
func (c *heldClock) Res(id wasi.ClockID) (uint64, wasi.Errno) { return c.now().Res(id) }

// Sleep sleeps by the clock of this moment.
func (c *heldClock) Sleep(ctx context.Context, d time.Duration) error { return c.now().Sleep(ctx, d) }
