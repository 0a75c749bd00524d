package hostcalls

import (
	"testing"

	"pgregory.net/rapid"

	"runloop.dev/rlp/caps"
)

// However deep runs launch one another, what any of them takes is gone for all
// above it, and nobody takes what is not left above. Each alone would take all
// that it may: the control.
//
//rlp:holds P18
func TestATreeOfRunsHasOneBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := func(name string) caps.Limits {
			return caps.Limits{}.With(caps.NetBytes, rapid.Int64Range(0, 50).Draw(t, name)).
				With(caps.NetRequestsPerMinute, rapid.Int64Range(0, 20).Draw(t, name+" a minute"))
		}
		tree := []*Budget{NewBudget(bound("root"), nil)}
		for range rapid.IntRange(1, 6).Draw(t, "runs") {
			tree = append(tree, NewBudget(bound("own"), tree[rapid.IntRange(0, len(tree)-1).Draw(t, "under")]))
		}
		now := int64(0)
		type request struct {
			by *Budget
			at int64
		}
		var sent []request
		took := map[*Budget]int64{}
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now += rapid.Int64Range(0, 20).Draw(t, "seconds") * nsPerSecond
			who, n := tree[rapid.IntRange(0, len(tree)-1).Draw(t, "who")], rapid.Int64Range(0, 20).Draw(t, "bytes")
			if who.busy(now) || !who.allows(caps.NetBytes, n) {
				continue
			}
			who.request(now)
			who.take(caps.NetBytes, n)
			for b := who; b != nil; b = b.up {
				took[b] += n
				sent = append(sent, request{b, now})
			}
		}
		for _, b := range tree {
			if most, _ := b.limits.Get(caps.NetBytes); took[b] > most || took[b] != b.used[caps.NetBytes] {
				t.Fatalf("%d bytes of %d, counted as %d", took[b], most, b.used[caps.NetBytes])
			}
			most, _ := b.limits.Get(caps.NetRequestsPerMinute)
			for _, first := range sent {
				n := int64(0)
				for _, r := range sent {
					if r.by == b && r.at >= first.at && r.at < first.at+60*nsPerSecond {
						n++
					}
				}
				if n > most {
					t.Fatalf("%d requests in a minute of %d", n, most)
				}
			}
		}
	})
	ten := caps.Limits{}.With(caps.ExecSpawns, 10)
	if !NewBudget(ten, nil).allows(caps.ExecSpawns, 10) {
		t.Error("control: a run by itself does not get what it has")
	}
	above := NewBudget(caps.Limits{}.With(caps.ExecSpawns, 5), nil)
	below := NewBudget(ten, NewBudget(caps.Limits{}, above))
	below.take(caps.ExecSpawns, 4)
	if left, bounded := below.Left(caps.ExecSpawns); left != 1 || !bounded || above.allows(caps.ExecSpawns, 2) {
		t.Errorf("%d left below, and more above", left)
	}
}
