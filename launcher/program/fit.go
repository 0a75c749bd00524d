package program

import (
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/launcher/run"
)

// HomeName is what stands in the place of a run's id in the name of the folder that
// is the home of an agent's programs.
const HomeName = "home"

// Unkept is what of a plan nothing keeps a program from, in words; "": nothing.
func Unkept(p run.Plan, layers []*caps.Layer, seed *uint64) string {
	if _, whole := Closed(layers); whole != "" {
		return fmt.Sprintf("a layer takes %s, and no program starts without: deny what lies in it, one by one", whole)
	}
	if seed != nil {
		return "a seed is given, and no lane makes the random numbers of a program repeatable: leave it out, or run a guest"
	}
	if !p.Effective.Any(caps.Time) {
		return "a layer takes time, and no lane keeps a program from clocks: leave time:read:* to it, or run a guest"
	}
	if n, set := p.Limits.Get(caps.CPUFuel); set {
		return fmt.Sprintf("limits.cpu_fuel = %d, and no lane counts the instructions of a program: take wall_time_ms", n)
	}
	return ""
}

// Bounds are those of a program under limits: what is said of its memory is asked of
// the lane.
func Bounds(b lane.Bounds, l caps.Limits) lane.Bounds {
	if most, set := l.Get(caps.MemoryBytes); set && (b.Memory == 0 || most < b.Memory) {
		b.Memory = most
	}
	return b
}
