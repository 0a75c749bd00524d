package hostcalls

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

// before is what a test does to a host before each call.
type before func(h *Host)

func asItIs(*Host) {}

// anew has the call decoded and judged as if it were the first.
func anew(h *Host) { h.others++ }

// unmindful keeps calls known whatever was called since, which the product does not.
func unmindful(h *Host) { h.others = 1 }

// transcript is all that can be seen of a run in which each byte of program is a
// step: numbers, answers, records, counts, what was said of secrets.
func transcript(t *testing.T, program []byte, prepare before) string {
	r, told := mailRig(t, "secrets:read:"+mailKey, "kb:read:notes", "kb:write:notes", "kb:read:contacts", "time:read:*")
	r.kb["notes/a"] = "stored"
	var out strings.Builder
	for i, b := range program {
		decisions, events := len(r.log.Decisions), len(r.log.Events)
		domain := []string{"notes", "contacts", "other"}[int(b>>4)%3]
		key := []string{"a", "b", mailText, strings.Repeat("long", 100)}[b>>6]
		narrower := &caps.Layer{Name: "narrower", Deny: []caps.Entry{{Grant: grantOf(t, "kb:read:notes")}}}
		lease := caps.Lease{Entry: caps.Entry{Grant: grantOf(t, "kb:read:contacts")}, MaxUses: 2, Expires: caps.Forever}
		call := func(name string, args ...string) {
			prepare(r.host)
			n, text := r.call(name, args...)
			if name == "secret_handle" {
				text = "" // is another one in each run
			}
			fmt.Fprintf(&out, "%d %s %d %s\n", i, name, n, text)
		}
		var err error
		switch b & 15 {
		case 8:
			call("kb_delete", "notes", key)
		case 9:
			call("kb_put", "notes", "a", key)
		case 10:
			if call("time_now"); b>>7 == 1 {
				call("kb_list", domain, key)
			}
		case 11:
			call("secret_handle", mailKey)
		case 12:
			call("log", "info", key)
		case 13:
			_, err = r.gate.Reload("turn", [][]*caps.Layer{nil, {narrower}}[b>>7])
		case 14:
			err = r.gate.Note(gate.Note{Cap: "env.read", Op: "environ_get", Target: "PATH", Allow: true})
		case 15:
			switch b >> 4 {
			case 0:
				err = r.gate.Hold(narrower)
			case 1:
				err = r.gate.Hold(&caps.Layer{Name: "leased", Leases: []caps.Lease{lease}})
			case 2:
				r.gate.Bound(r.gate.Calls() + 5)
			case 3:
				r.gate.Charge(2)
			case 4:
				err = r.gate.Taint("http:evil.example")
			}
		default:
			call("kb_get", domain, key)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.log.Events[events:] {
			if e := &r.log.Events[events+i]; e.Verb == "secret_handle" {
				e.ResultHash = "" // of another handle in each run
			}
		}
		records, err := json.Marshal([]any{r.log.Decisions[decisions:], r.log.Events[events:]})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %d %+v %q %q\n", records, r.gate.Calls(), r.gate.Counts(caps.KBRead), r.lines, *told)
	}
	return out.String()
}

// callsAreLikeTheFirst holds a run against one in which no call is known.
func callsAreLikeTheFirst(t *testing.T, program []byte, prepare before) (differs string) {
	got, want := strings.Split(transcript(t, program, prepare), "\n"), strings.Split(transcript(t, program, anew), "\n")
	for i := range want {
		if got[i] != want[i] {
			return fmt.Sprintf("%v\nsays  %s\nafter %s\nwant  %s", program, got[i], got[max(i-1, 0)], want[i])
		}
	}
	return ""
}

func programs(seeds uint64) (list [][]byte) {
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 7))
		few := []byte{byte(rng.IntN(256)), byte(rng.IntN(256)), byte(rng.IntN(256)), 0, 0xb}
		var p []byte
		for range 30 {
			b := few[rng.IntN(len(few))]
			if rng.IntN(4) == 0 {
				b = byte(rng.IntN(256))
			}
			p = append(p, b)
		}
		list = append(list, p)
	}
	return list
}

// Whatever is called, in whatever order and between whatever narrowings, leases,
// limits and secrets, a call that is known is answered, recorded and counted as if
// it were the first.
//
//rlp:holds C15 C16 C20 K57
func TestKnownCallsAreLikeTheFirst(t *testing.T) {
	for _, p := range programs(150) {
		if differs := callsAreLikeTheFirst(t, p, asItIs); differs != "" {
			t.Fatal(differs)
		}
	}
	// The control: known calls that nothing makes unknown are another program.
	unsound := slices.ContainsFunc(programs(150), func(p []byte) bool {
		return callsAreLikeTheFirst(t, p, unmindful) != ""
	})
	if !unsound {
		t.Error("control: it makes no difference whether calls are forgotten")
	}
}

func FuzzKnownCallsAreLikeTheFirst(f *testing.F) {
	for _, p := range programs(5) {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		if differs := callsAreLikeTheFirst(t, program[:min(len(program), 60)], asItIs); differs != "" {
			t.Error(differs)
		}
	})
}
