package gate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// world is what the runs of these tests hold, and what may be taken away.
var world = []string{
	"fs:read:/notes", "fs:write:/notes", "fs:delete:/notes", "fs:read:/data/in", "kb:read:notes", "kb:read:contacts",
	"kb:write:drafts",
	"time:read:*", "env:read:PATH", "process:exec:/usr/bin/grep", "mcp:call:github", "agents:launch:critic",
}

// asked are requests on both sides of every edge that layers of these tests draw.
func asked(t testing.TB) []caps.Request {
	t.Helper()
	list := []caps.Request{{Family: caps.Tool, Name: "memory:kb_get"}, {Family: caps.Tool, Name: "file:path_open"}}
	for _, text := range append(slices.Clone(world), "fs:read:/notes/private/x", "fs:write:/notes/a/b", "fs:read:/etc",
		"kb:write:notes") {
		rs, err := caps.ParseRequest(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rs...)
	}
	return list
}

// someLayer takes something away, by bounding families or by denying.
func someLayer(t testing.TB, rng *rand.Rand, name string) *caps.Layer {
	t.Helper()
	l := &caps.Layer{Name: name}
	narrower := append(slices.Clone(world), "fs:read:/notes/private", "fs:write:/notes/a", "fs:read:/data/in/b")
	for range rng.IntN(3) {
		l.Deny = append(l.Deny, entry(t, narrower[rng.IntN(len(narrower))]))
	}
	if rng.IntN(2) == 0 {
		e := entry(t, narrower[rng.IntN(len(narrower))])
		l.Bounds = append(l.Bounds, caps.Bound{Family: e.Grant.Family, Modes: caps.AllModes(e.Grant.Family)})
		l.Allow = append(l.Allow, e, entry(t, "fs:read:/etc")) // which no base has
	}
	if rng.IntN(4) == 0 {
		l.Deny = append(l.Deny, caps.Entry{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: "memory:kb_get"}})
	}
	return l
}

// answers is what set says to every request, from a set that was made anew: the
// gate's own way to it is not the test's.
func answers(t testing.TB, base caps.Set, layers []*caps.Layer, requests []caps.Request) string {
	t.Helper()
	set := base
	for _, l := range layers {
		var err error
		if set, _, err = set.Narrow(l); err != nil {
			t.Fatal(err)
		}
	}
	return decisions(set, requests)
}

func decisions(set caps.Set, requests []caps.Request) string {
	var b strings.Builder
	for _, r := range requests {
		if set.Check(r).Allow {
			b.WriteByte('1')
		} else {
			b.WriteByte('0')
		}
	}
	return b.String()
}

// above reports whether a allows anything that b does not.
func above(a, b string) bool {
	for i := range a {
		if a[i] > b[i] {
			return true
		}
	}
	return false
}

// Whatever the order of reloads, refused ones, taint and narrowings for good: the
// run holds what its launch left, met with the last layers that could be applied
// and with all that is for good. It is never above the launch, what one reload
// took away comes back with the next, and each change is one record.
//
//rlp:holds Y53 Y55 Y58 Y62
func TestReloadsMeetTheLaunch(t *testing.T) {
	requests := asked(t)
	seeds := uint64(120)
	if testing.Short() {
		seeds = 10
	}
	wider, back := 0, 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 7))
		launchLayers := []*caps.Layer{someLayer(t, rng, "override:a.toml")}
		base := baseOf(t, world...)
		launch, _, err := base.Narrow(launchLayers[0])
		if err != nil {
			t.Fatal(err)
		}
		opt := keepAll
		opt.Floor = &caps.Layer{
			Name: "_untrusted", Because: caps.UntrustedContext,
			Deny: []caps.Entry{entry(t, "kb:write:drafts"), entry(t, "process:exec:/usr/bin/grep")},
		}
		g, log := open(t, launch, opt)
		atLaunch := decisions(launch, requests)
		var valid, good, floor []*caps.Layer
		for step := range 20 {
			before, was := decisions(g.Set(), requests), g.Generation()
			switch rng.IntN(8) {
			case 0:
				if err := g.Taint("https://example.com/"); err != nil {
					t.Fatal(err)
				}
				if !slices.Contains(good, opt.Floor) {
					good = append(good, opt.Floor)
				}
			case 1:
				l := someLayer(t, rng, "taken")
				if err := g.Hold(l); err != nil {
					t.Fatal(err)
				}
				good = append(good, l)
			case 2: // a layer that cannot be applied, after one that could
				bad := &caps.Layer{
					Name: "bad",
					Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.FS, Modes: 1, Scope: "no/path"}}},
				}
				if changed, err := g.Reload("turn", []*caps.Layer{someLayer(t, rng, "b"), bad}); err == nil || changed {
					t.Fatalf("seed %d, step %d: %v %v", seed, step, changed, err)
				}
			default:
				valid, floor = nil, nil
				for i := range rng.IntN(3) {
					valid = append(valid, someLayer(t, rng, fmt.Sprint("override:", i)))
				}
				if rng.IntN(2) == 0 {
					floor = append(floor, someLayer(t, rng, "_untrusted"))
				}
				changed, err := g.Reload("turn", valid, floor...)
				if err != nil || changed != (g.Generation() != was) {
					t.Fatalf("seed %d, step %d: changed %v, generation %d after %d: %v", seed, step, changed, g.Generation(), was, err)
				}
			}
			now, all := decisions(g.Set(), requests), slices.Concat(valid, good)
			if _, tainted := g.Tainted(); tainted {
				all = append(all, floor...)
			}
			if want := answers(t, base, slices.Concat(launchLayers, all), requests); now != want {
				t.Fatalf("seed %d, step %d: holds\n%s, want\n%s", seed, step, now, want)
			}
			if above(now, atLaunch) {
				t.Fatalf("seed %d, step %d: above its launch", seed, step)
			}
			if above(now, before) {
				back++
			}
			if above(answers(t, base, all, requests), now) {
				wider++ // the control: without the launch among them the files would give more
			}
		}
		if got := len(log.Events); int64(got) != g.Generation()-1 {
			t.Fatalf("seed %d: %d records of %d swaps: %+v", seed, got, g.Generation()-1, log.Events)
		}
		for i, e := range log.Events {
			if e.Kind != audit.KindCapsSwap || e.Source == "" || e.Before == e.After && e.Label == "" || i > 0 &&
				e.Before != log.Events[i-1].After {
				t.Fatalf("seed %d: %+v", seed, e)
			}
		}
	}
	if wider == 0 || back == 0 {
		t.Errorf("nothing was at stake: %d times the files alone were wider, %d times something came back", wider, back)
	}
}

// Any number of goroutines that ask while the run is given other sets are each
// answered by one set as a whole: all that one swap changes changes at once, and
// equal sets answer alike.
//
//rlp:holds P16 Y58 C20
func TestAskingWhileTheSetIsSwapped(t *testing.T) {
	base := baseOf(t, world...)
	g, _ := open(t, base, keepAll)
	requests := asked(t)
	layers := [][]*caps.Layer{
		nil,
		{{Name: "a", Deny: []caps.Entry{
			entry(t, "fs:read:/notes/private"), entry(t, "kb:read:notes"),
			entry(t, "mcp:call:github"),
		}}},
		{
			{Name: "b", Deny: []caps.Entry{entry(t, "fs:write:/notes/a"), entry(t, "kb:write:drafts")}},
			{Name: "c", Deny: []caps.Entry{entry(t, "time:read:*")}},
		},
	}
	known := map[string]bool{}
	for _, l := range layers {
		known[answers(t, base, l, requests)] = true
	}
	if len(known) != len(layers) {
		t.Fatal("control: the sets do not differ")
	}
	var wg sync.WaitGroup
	stop, mixed := make(chan struct{}), make(chan string, 4)
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := decisions(g.Set(), requests); !known[got] {
					mixed <- got
					return
				}
			}
		})
	}
	for i := range 300 {
		if _, err := g.Reload("turn", layers[i%len(layers)]); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	select {
	case got := <-mixed:
		t.Errorf("half of one set and half of another: %s", got)
	default:
	}
}

// A lease is counted on through the turns of a run, and no reload makes it
// longer: not the same words again, not later ones, not none at all.
func TestLeasesOutliveReloads(t *testing.T) {
	clock := int64(1000)
	opt := keepAll
	opt.Now = func() int64 { return clock }
	leased := entry(t, "fs:read:/notes")
	lease := func(expires, uses int64) *caps.Layer {
		return &caps.Layer{Name: "override:a.toml", Leases: []caps.Lease{{Entry: leased, Expires: expires, MaxUses: uses}}}
	}
	for name, c := range map[string]struct {
		launch *caps.Layer
		reload []*caps.Layer
		uses   int // that are left after one use, before the time is over
		until  int64
	}{
		"the same":            {lease(2000, 3), []*caps.Layer{lease(2000, 3)}, 2, 2000},
		"longer":              {lease(2000, 3), []*caps.Layer{lease(9000, 30)}, 2, 2000},
		"none any more":       {lease(2000, 3), nil, 2, 2000},
		"shorter":             {lease(2000, 3), []*caps.Layer{lease(1500, 2)}, 1, 1500},
		"one where none was":  {&caps.Layer{Name: "override:a.toml"}, []*caps.Layer{lease(1500, 2)}, 2, 1500},
		"over when it begins": {lease(2000, 3), []*caps.Layer{lease(500, 3)}, 0, 500},
	} {
		t.Run(name, func(t *testing.T) {
			clock = 1000
			set, _, err := baseOf(t, "fs:read:/notes").Narrow(c.launch)
			if err != nil {
				t.Fatal(err)
			}
			g, _ := open(t, set, opt)
			op := opOf(t, g, "path_open")
			if a := g.Admit(op, readNote, readNote.Name, nil); !a.OK() {
				t.Fatal("control: the first use")
			}
			for range 2 {
				if _, err := g.Reload("turn", c.reload); err != nil {
					t.Fatal(err)
				}
			}
			uses := 0
			last := g.Admit(op, readNote, readNote.Name, nil)
			for ; last.OK() && uses < 10; uses++ {
				last = g.Admit(op, readNote, readNote.Name, nil)
			}
			if uses != c.uses || last.Denial.Code != caps.LeaseExpired {
				t.Errorf("%d uses were left, want %d; then %s", uses, c.uses, last.Denial.Code)
			}
		})
		t.Run(name+", by time", func(t *testing.T) {
			clock = 1000
			set, _, err := baseOf(t, "fs:read:/notes").Narrow(c.launch)
			if err != nil {
				t.Fatal(err)
			}
			g, _ := open(t, set, opt)
			op := opOf(t, g, "path_open")
			for clock = 1000; clock < 3000; clock += 100 {
				if clock%500 == 0 { // a turn ends
					if _, err := g.Reload("turn", c.reload); err != nil {
						t.Fatal(err)
					}
				}
				if a := g.Admit(op, readNote, readNote.Name, nil); clock >= c.until && a.OK() {
					t.Fatalf("used at %d, leased until %d", clock, c.until)
				}
			}
		})
	}
}
