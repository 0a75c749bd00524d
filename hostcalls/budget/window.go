package budget

// A window counts events of the last minute, by the second: one of 60 whole
// seconds ago still counts, so no minute has more than what count allowed.
type window struct {
	seconds [61]int64
	last    int64 // the second that is being counted
	total   int64
}

func (w *window) add(now int64) {
	w.advance(now)
	w.seconds[slot(w.last)]++
	w.total++
}

func (w *window) count(now int64) int64 {
	w.advance(now)
	return w.total
}

const nsPerSecond = 1_000_000_000

// advance makes now, in nanoseconds, the present. When the clock was put back,
// what was counted stays for another minute.
func (w *window) advance(now int64) {
	s := now / nsPerSecond
	switch gone := s - w.last; {
	case gone < 0 || gone >= int64(len(w.seconds)):
		keep := w.total
		w.seconds, w.total = [61]int64{}, 0
		if gone < 0 {
			w.seconds[slot(s)], w.total = keep, keep
		}
	default:
		for i := w.last + 1; i <= s; i++ {
			w.total -= w.seconds[slot(i)]
			w.seconds[slot(i)] = 0
		}
	}
	w.last = s
}

func slot(second int64) int64 { return ((second % 61) + 61) % 61 }
