package gate

import (
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// barriers are the requests before which all that was recorded must be on disk,
// a bit for each mode of each family, so that a call that needs none pays for
// one test.
type barriers [caps.Tool + 1]caps.ModeSet

func barriersOf(d audit.Durability) (b barriers) {
	for f := range b {
		for m := range caps.Mode(32) {
			if d == audit.PerRecord || d == audit.PerEffect && caps.Acts(caps.Family(f), m) {
				b[f] |= 1 << m
			}
		}
	}
	return b
}

// barrier has the record of d on disk before the call goes on. A refusal has no
// effect, and is waited for only where every record is. When the disk fails the
// call is refused and the gate stays shut.
func (g *Gate) barrier(op *Op, d caps.Decision) caps.Decision {
	if !d.Allow && g.opt.Durability != audit.PerRecord {
		return d
	}
	if err := g.sink.Sync(); err != nil {
		g.err = fmt.Errorf("recording %s on disk: %w", op.text, err)
		return caps.Decision{Code: caps.AuditUnavailable}
	}
	return d
}
