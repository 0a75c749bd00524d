package gate

import (
	"errors"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// A counted sink is touched by one goroutine at a time, or the race detector says
// so; without it, by what it counted.
type counted struct {
	*audit.Memory
	n int
}

func (c *counted) Decide(d *audit.Decision) (audit.Mark, error) {
	c.n++
	return c.Memory.Decide(d)
}

// A gate that is closed while the guest's goroutine is in the middle of its
// requests has recorded each that was allowed, and records and allows none after it.
func TestAClosedGateRecordsNothing(t *testing.T) {
	for range 300 {
		set, err := caps.Base([]caps.Entry{{Grant: caps.Grant{Family: caps.KBRead, Modes: 1, Scope: "notes"}}}, caps.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		sink := &counted{Memory: audit.NewMemory()}
		g, err := New(set, sink, Options{MaxCalls: -1})
		if err != nil {
			t.Fatal(err)
		}
		op, err := g.Op("kb_get")
		if err != nil {
			t.Fatal(err)
		}
		r := caps.Request{Family: caps.KBRead, Name: "notes"}
		var last Answer
		allowed, begun, ended := 0, make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for {
				if last = g.Admit(op, r, "", nil); !last.OK() {
					return
				}
				if allowed++; allowed == 1 {
					close(begun)
				}
			}
		}()
		<-begun
		note := g.Close(ended)
		at := sink.n // the guest's goroutine may still run
		if err := note(Note{Cap: "caps.empty", Op: "_start", Always: true}); err != nil {
			t.Fatal(err)
		}
		<-ended
		if sink.n != at+1 || allowed != at || g.Counts(caps.KBRead) != (Count{Allowed: int64(at)}) ||
			last.Denial.Code != caps.AuditUnavailable {
			t.Fatalf("%d recorded when it was closed, %d in the end; %d allowed, counted %+v, %v", at, sink.n, allowed,
				g.Counts(caps.KBRead), last.Denial.Code)
		}
	}
}

// Every way to use the sink or to change what is held is closed.
func TestEachDoorOfAClosedGateIsClosed(t *testing.T) {
	set, err := caps.Base([]caps.Entry{{Grant: caps.Grant{Family: caps.KBRead, Modes: 1, Scope: "notes"}}}, caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	log := audit.NewMemory()
	g, err := New(set, log, Options{MaxCalls: -1})
	if err != nil {
		t.Fatal(err)
	}
	op, err := g.Op("kb_get")
	if err != nil {
		t.Fatal(err)
	}
	r := caps.Request{Family: caps.KBRead, Name: "notes"}
	last := g.Admit(op, r, "", nil)
	if !last.OK() {
		t.Fatal("control: refused")
	}
	g.Close(nil)
	admitted := g.Admit(op, r, "", nil).OK()
	tree := g.AdmitTree(op, r, "").OK()
	_, hidden := g.Hidden(op)
	if admitted || tree || g.Again(&last) || g.Would(op, r) || g.Give(op, r, "") || g.Spend() || !hidden ||
		g.Holds(0, caps.KBRead, 0) {
		t.Error("something is allowed")
	}
	if d := g.Refuse(op, r, "", caps.BudgetExhausted); d.Code != caps.AuditUnavailable {
		t.Errorf("refused as %+v", d)
	}
	_, opErr := g.Op("kb_put")
	_, toolErr := g.ToolOp(op, "mcp:a/b", "a/b")
	_, reloadErr := g.Reload("turn", nil)
	for i, err := range []error{
		opErr, toolErr, reloadErr, g.Note(Note{Cap: "caps.empty"}), g.Done(&audit.Event{}),
		g.Taint("x"), g.Hold(&caps.Layer{Name: "l"}),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%d: %v", i, err)
		}
	}
	g.Charge(5)
	g.SpendLeases(map[caps.Grant]int64{{Family: caps.KBRead}: 1})
	if len(log.Decisions) != 1 || len(log.Events) != 0 || g.Calls() != 1 || len(g.LeaseUses()) != 0 || g.Err() != nil {
		t.Errorf("%d decisions, %d events, %d calls, %v", len(log.Decisions), len(log.Events), g.Calls(), g.Err())
	}
}
