package hostcalls

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

// Calls in any order, repeated or not, are answered and recorded one by one as
// if each were the first, through narrowings and records of others.
//
//rlp:holds C15 C16 C20
func TestRepeatedCallsAreCallsLikeOthers(t *testing.T) {
	for seed := range uint64(200) {
		r := newRig(t, "kb:read:contacts", "kb:read:notes", "time:read:*")
		rng := rand.New(rand.NewPCG(seed, 1))
		granted := map[string]bool{"contacts": true, "notes": true}
		domains := []string{"contacts", "notes", "drafts"}
		for step := range 40 {
			before := len(r.log.Decisions)
			domain := domains[rng.IntN(2+int(seed%2))]
			switch rng.IntN(12) {
			case 0:
				if err := r.gate.Hold(&caps.Layer{
					Name: "taint",
					Deny: []caps.Entry{{Grant: grantOf(t, "kb:read:"+domain)}},
				}); err != nil {
					t.Fatal(err)
				}
				granted[domain] = false
				continue
			case 1:
				r.call("time_now")
				continue
			case 2:
				if err := r.gate.Note(gate.Note{Cap: "env.read", Op: "environ_get", Target: "PATH", Allow: true}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			n, _ := r.call("kb_get", domain, "k")
			if allowed := n == noSuchKey; allowed != granted[domain] {
				t.Fatalf("seed %d, step %d: %s answered %d, granted: %v", seed, step, domain, n, granted[domain])
			}
			if len(r.log.Decisions) != before+1 {
				t.Fatalf("seed %d, step %d: %d records for one call", seed, step, len(r.log.Decisions)-before)
			}
			if d := r.log.Decisions[before]; d.Deny == granted[domain] || d.Op != "kb_get" || d.Target != domain+"/k" {
				t.Fatalf("seed %d, step %d: %s recorded as %+v", seed, step, domain, d)
			}
		}
	}
}

func grantOf(t *testing.T, text string) caps.Grant {
	t.Helper()
	g, err := caps.ParseGrant(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A limit on calls counts repeated ones.
//
//rlp:holds C20
func TestRepeatedCallsCount(t *testing.T) {
	log := audit.NewMemory()
	set, err := caps.Base([]caps.Entry{{Grant: grantOf(t, "kb:read:notes")}}, caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(set, log, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: 5})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, log: log, gate: g, kb: memoryKB{}, mem: make([]byte, 1<<17), funcs: map[string]abi.Func{}}
	funcs, err := New(Config{Gate: g, Components: Components{KB: r.kb, Masks: noMasks{}}, Now: func() int64 {
		return 1
	}}).Funcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range funcs {
		r.funcs[f.Name] = f
	}
	for i := range 8 {
		n, _ := r.call("kb_get", "notes", "k")
		if want := i < 5; (n == noSuchKey) != want {
			t.Errorf("call %d of 5: %d", i+1, n)
		}
	}
	if c := g.Counts(caps.KBRead); c.Allowed != 5 || c.Denied != 3 {
		t.Errorf("%+v", c)
	}
}

// A journal that is cut while a guest repeats a call ends the run: nothing is
// allowed that could not be recorded.
//
//rlp:holds C15
func TestCutJournalEndsRepeatedCalls(t *testing.T) {
	for _, cut := range []bool{true, false} {
		t.Run(fmt.Sprintf("cut=%v", cut), func(t *testing.T) {
			j, err := journal.Create(journal.Options{Dir: t.TempDir() + "/journal", Head: audit.Head{RunID: "cut"}})
			if err != nil {
				t.Fatal(err)
			}
			set, err := caps.Base([]caps.Entry{{Grant: grantOf(t, "kb:read:notes")}}, caps.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			g, err := gate.New(set, j, gate.Options{KeepAllowed: true, MaxCalls: -1})
			if err != nil {
				t.Fatal(err)
			}
			h := New(Config{Gate: g})
			op, err := g.Op(idle.name)
			if err != nil {
				t.Fatal(err)
			}
			f := idle.link(h, op)
			call, calls := f.Call, 0
			f.Call = func(ctx context.Context, mem []byte, stack []uint64) error {
				if calls++; calls == 1000 && cut {
					if err := os.Truncate(j.Path(), 0); err != nil {
						t.Error(err)
					}
				}
				return call(ctx, mem, stack)
			}
			m, err := guest.Compile(t.Context(), guest.Config{
				Module: loopingModule("notes\x00\x00\x00notes"), Name: "cut", Funcs: []abi.Func{f}, MemoryBytes: 1 << 20,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			end := m.Run(t.Context(), guest.RunConfig{Wall: time.Minute})
			if cut && (end.Kind != guest.HostError || calls > 1001) || !cut && end.Kind != guest.OK {
				t.Errorf("ended as %v (%v) after %d calls", end.Kind, end.Err, calls)
			}
			end2 := j.Event(&audit.Event{Kind: audit.KindRunFailed})
			if cut == (end2 == nil) {
				t.Errorf("the end record: %v", end2)
			}
			_ = j.Close()
		})
	}
}

// Calls allocate nothing, be they repeated, refused or each another than before.
func TestCallsAllocateNothing(t *testing.T) {
	j, err := journal.Create(journal.Options{Dir: t.TempDir() + "/journal", Head: audit.Head{RunID: "many"}})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	set, err := caps.Base([]caps.Entry{{Grant: grantOf(t, "kb:read:notes")}, {Grant: grantOf(t, "kb:read:tasks")}},
		caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(set, j, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1})
	if err != nil {
		t.Fatal(err)
	}
	op, err := g.Op(idle.name)
	if err != nil {
		t.Fatal(err)
	}
	call := idle.link(New(Config{Gate: g}), op).Call
	mem, stack := []byte("notestasksother."), make([]uint64, 4)
	for name, turns := range map[string][2]uint64{
		"repeated": {0, 0}, "denied": {10, 10}, "in turn": {0, 5},
		"one of them denied": {5, 10},
	} {
		i := 0
		n := testing.AllocsPerRun(1000, func() {
			copy(stack, []uint64{turns[i%2], 5, 16, 0})
			if err := call(t.Context(), mem, stack); err != nil {
				t.Error(err)
			}
			i++
		})
		if n != 0 {
			t.Errorf("%s: %v allocations a call", name, n)
		}
	}
	if c := g.Counts(caps.KBRead); c.Allowed != 2*1001+501 || c.Denied != 1001+500 {
		t.Errorf("control: %+v", c)
	}
}

// noSuchKey is what a permitted kb_get of an empty store answers.
const noSuchKey = -44

// A call that is refused for its arguments alone is recorded, explained and
// counted like any other; so is one that nothing has to be decided about.
//
//rlp:holds C15
func TestRefusedEarlyIsStillACall(t *testing.T) {
	r := newRig(t, "kb:write:drafts")
	r.mem = make([]byte, 8<<20)
	ask := func(name string, stack ...uint64) (int64, answerJSON) {
		t.Helper()
		if err := r.funcs[name].Call(context.Background(), r.mem, stack); err != nil {
			t.Fatal(err)
		}
		var a answerJSON
		if err := json.Unmarshal([]byte(r.rest()), &a); err != nil {
			t.Fatal(err)
		}
		return int64(stack[0]), a
	}
	if n, a := ask("kb_put", 16, 6, 32, 1, 64, 2<<20, 0, 0); n != -1 || a.Error != "2big" || a.Hint == "" {
		t.Errorf("too large: %d %+v", n, a)
	}
	if n, a := ask("kb_put", 16, 6, 32, 1, 64, 1<<31, 0, 0); n != -21 || a.Error != "fault" || a.Hint == "" {
		t.Errorf("beyond the memory: %d %+v", n, a)
	}
	if n, a := ask("kb_put", 16, 6, 32, 1, 64, 1, 1<<31, 64); n != -21 || a.Error != "fault" {
		t.Errorf("a response beyond the memory: %d %+v", n, a)
	}
	if len(r.log.Decisions) != 3 {
		t.Fatalf("%d records for 3 calls: %+v", len(r.log.Decisions), r.log.Decisions)
	}
	for _, d := range r.log.Decisions {
		if !d.Deny || d.Reason != "invalid_request" || d.Op != "kb_put" || d.Cap != "kb.write" {
			t.Errorf("%+v", d)
		}
	}
	if n, _ := r.call("log", "info", "x"); n != 0 || r.gate.Calls() != 4 {
		t.Errorf("log: %d, %d calls", n, r.gate.Calls())
	}
}
