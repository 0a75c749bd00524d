package budget

import (
	"math"
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
		tree := []*Budget{New(bound("root"), nil)}
		for range rapid.IntRange(1, 6).Draw(t, "runs") {
			tree = append(tree, New(bound("own"), tree[rapid.IntRange(0, len(tree)-1).Draw(t, "under")]))
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
			if who.Busy(now) || !who.Allows(caps.NetBytes, n) {
				continue
			}
			who.Request(now)
			who.Take(caps.NetBytes, n)
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
	if !New(ten, nil).Allows(caps.ExecSpawns, 10) {
		t.Error("control: a run by itself does not get what it has")
	}
	above := New(caps.Limits{}.With(caps.ExecSpawns, 5), nil)
	below := New(ten, New(caps.Limits{}, above))
	below.Take(caps.ExecSpawns, 4)
	if left, bounded := below.Left(caps.ExecSpawns); left != 1 || !bounded || above.Allows(caps.ExecSpawns, 2) {
		t.Errorf("%d left below, and more above", left)
	}
}

// A minute is sixty whole seconds and what began before them, also when the clock
// was put back a little.
func TestTheEdgesOfAMinute(t *testing.T) {
	const start = int64(1_000_000) * nsPerSecond
	for _, c := range []struct{ back, after, want int64 }{
		{0, 0, 2}, {0, 60, 2}, {0, 61, 0}, {0, 62, 0}, {10, 0, 2}, {10, 10, 2}, {10, 20, 2}, {10, 60, 2}, {10, 61, 0},
	} {
		var w window
		w.add(start)
		w.add(start)
		if c.back > 0 {
			w.count(start - c.back*nsPerSecond)
		}
		if got := w.count(start + (c.after-c.back)*nsPerSecond); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// No minute has more requests than the limit, whatever the clock does.
func TestWindow(t *testing.T) {
	var w window
	start := int64(1_000_000) * nsPerSecond
	for i := range int64(10) {
		w.add(start + i*nsPerSecond)
	}
	for _, c := range []struct{ after, want int64 }{{9, 10}, {60, 10}, {61, 9}, {65, 5}, {69, 1}, {70, 0}} {
		if got := w.count(start + c.after*nsPerSecond); got != c.want {
			t.Errorf("after %d s: %d, want %d", c.after, got, c.want)
		}
	}
	w.add(start)
	if got := w.count(start - 3600*nsPerSecond); got != 1 {
		t.Errorf("the clock was put back: %d", got)
	}
	if got := w.count(start - 3500*nsPerSecond); got != 0 {
		t.Errorf("and a minute later: %d", got)
	}
	if got := w.count(1 << 62); got != 0 {
		t.Errorf("in a long time: %d", got)
	}
}

// What a tool says it took is rounded up, and is never negative.
func TestWholeNumbers(t *testing.T) {
	for n, want := range map[float64]int64{-1: 0, 0: 0, 0.1: 1, 1: 1, 1.5: 2, 1e300: 1 << 53} {
		if got := whole(n); got != want {
			t.Errorf("%g is %d, want %d", n, got, want)
		}
	}
	if got := whole(math.NaN()); got != 0 {
		t.Errorf("what is no number is %d", got)
	}
}
