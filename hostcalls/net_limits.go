package hostcalls

import (
	"net/http"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

// A netState is what a run has used of the network.
type netState struct {
	op    *gate.Op
	bytes int64 // sent and received
	rate  window
	named bool     // the host that was asked for last is named by the base
	names []string // of the headers of the last answer
	spare spare
	plain http.Header // of a request that names none

	deadline deadline // of this call
}

// over refuses a request that a limit, or the address that is written in it,
// does not allow. It takes nothing, and is asked before each request.
func (n *netState) over(h *Host, mode caps.Mode, host string, size int64) (caps.Code, bool) {
	if h.cfg.HTTP == nil {
		return caps.Unavailable, true
	}
	if most, set := h.cfg.Limits.Get(caps.NetRequestsPerMinute); set && n.rate.count(h.cfg.Now()) >= most {
		return caps.RateLimited, true
	}
	if most, set := h.cfg.Limits.Get(caps.NetBytes); set && n.bytes+size > most {
		return caps.BudgetExhausted, true
	}
	n.named = h.named(mode, host)
	if h.cfg.HTTP.Vet(host, n.named) != nil {
		return caps.AddressNotPermitted, true
	}
	return 0, false
}

// take counts a request that is about to be sent.
func (n *netState) take(h *Host, size int64) {
	if _, set := h.cfg.Limits.Get(caps.NetRequestsPerMinute); set {
		n.rate.add(h.cfg.Now())
	}
	n.bytes += size
}

// room is how many more bytes may be received, and whether a limit says so.
func (n *netState) room(l caps.Limits) (int64, bool) {
	if most, set := l.Get(caps.NetBytes); set && most-n.bytes < MaxResponseBody {
		return max(most-n.bytes, 0), true
	}
	return MaxResponseBody, false
}

// named reports whether the base grants exactly this host, not one of many by
// a wildcard: what an address that is not public needs.
func (h *Host) named(mode caps.Mode, host string) bool {
	set := h.cfg.Gate.Set()
	d := set.Check(caps.Request{Family: caps.Net, Mode: mode, Name: host})
	return d.Allow && set.Scope(caps.Net, d.Scope) == host && set.BaseModes(caps.Net, d.Scope).Has(mode)
}

const nsPerSecond = 1_000_000_000

// A window counts events of the last minute, by the second: one of 60 whole
// seconds ago still counts, so no minute has more than what count allowed.
type window struct {
	seconds [61]int64
	last    int64 // the second that is being counted
	total   int64
}

// advance makes now, in nanoseconds, the present. When the clock was put back,
// what was counted stays for another minute.
func (w *window) advance(now int64) {
	s := now / nsPerSecond
	switch gone := s - w.last; {
	case gone == 0:
		return
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

func (w *window) count(now int64) int64 {
	w.advance(now)
	return w.total
}

func (w *window) add(now int64) {
	w.advance(now)
	w.seconds[slot(w.last)]++
	w.total++
}
