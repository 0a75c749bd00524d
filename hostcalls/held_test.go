package hostcalls

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"runloop.dev/rlp/internal/engine/abi"
)

// A holding run may have so many bytes held for it.
type holding struct {
	held, most, peak int64
	refused          bool
}

var errHeld = errors.New("no more is held")

func (h *holding) Hold(n int64) error {
	if h.held+n > h.most {
		h.refused = true
		return errHeld
	}
	h.held += n
	h.peak = max(h.peak, h.held)
	return nil
}

// What the host holds for a run is counted: what it passes, what it returned, what
// it is answered, while that comes and until the next call. Where it may have no
// more, no more is held. Control: with room for all of it each succeeds.
func TestWhatIsHeldForARunIsCounted(t *testing.T) {
	const mib = 1 << 20
	w := apiWorld(t)
	var sent atomic.Int64
	w.handler = func(rw http.ResponseWriter, _ *http.Request) {
		for range 48 * mib / (64 << 10) {
			n, err := rw.Write(make([]byte, 64<<10))
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}
	get := `{"url":"https://api.example.com/"}`
	for name, c := range map[string]struct {
		call string
		args []string
		some int64 // less than it takes
	}{
		"an answer": {"net_http", []string{get, ""}, 8 * mib},
		"a value":   {"kb_get", []string{"notes", "big"}, mib / 2},
		"a body": {
			"net_http",
			[]string{`{"method":"POST","url":"https://api.example.com/"}`, strings.Repeat("x", 3*mib)},
			2 * mib,
		},
		// once as it was passed, once as it is kept
		"a result": {"result", []string{`"` + strings.Repeat("x", 900<<10) + `"`}, mib},
	} {
		for _, most := range []int64{c.some, 64 * mib} {
			r := netRig(t, w, apiPolicy)
			if c.call == "kb_get" {
				r = newRig(t, "kb:read:notes")
				r.kb["notes/big"] = strings.Repeat("x", mib)
			}
			r.mem = make([]byte, 8*mib)
			stack, at := []uint64{}, 16
			for _, a := range c.args {
				stack = append(stack, uint64(at), uint64(copy(r.mem[at:], a)))
				at += len(a)
			}
			h := &holding{most: most}
			sent.Store(0)
			err := r.funcs[c.call].Call(abi.WithHolder(t.Context(), h), r.mem, append(stack, 0, 0))
			if most == c.some {
				if !h.refused {
					t.Errorf("%s: %d bytes were enough: %v", name, most, err)
				}
				if n := sent.Load(); n > 40*mib {
					t.Errorf("%s: %d bytes were read for it", name, n)
				}
				continue
			}
			if err != nil || h.peak < c.some {
				t.Errorf("control: %s: %v, %d bytes at once", name, err, h.peak)
			}
			if err := r.funcs["time_now"].Call(abi.WithHolder(t.Context(), h), r.mem, make([]uint64, 2)); err != nil ||
				h.held > 2*mib {
				t.Errorf("%s: after the next call %d bytes are held: %v", name, h.held, err)
			}
		}
	}
}
