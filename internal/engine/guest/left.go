package guest

import "time"

// Left is what is left to the run that is under way: of its wall-clock time, and
// of its fuel in instructions, where that is bounded. It is for host functions
// of that run, in the guest's own goroutine.
func (m *Module) Left() (wall time.Duration, instructions int64, bounded bool) {
	r := m.run
	r.clock.mu.Lock()
	wall = max(r.clock.left(), 0)
	r.clock.mu.Unlock()
	if r.fuel.bounded {
		return wall, max(r.fuel.left(), 0), true
	}
	return wall, 0, false
}
