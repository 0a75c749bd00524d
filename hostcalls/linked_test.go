package hostcalls

import (
	"context"
	"errors"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/record/audit"
)

// A request that cannot be read, or points beyond the memory, never gets the answer of
// the one before, however often it is made.
func TestARefusedRequestGetsNoAnswerOfAnother(t *testing.T) {
	for _, wrong := range [][]string{{"no domain", "k"}, {"\xff", "k"}, {"notes", ""}} {
		r := newRig(t, "kb:read:notes")
		r.kb["notes/k"] = "value"
		for round := range 3 {
			if n, text := r.call("kb_get", "notes", "k"); n != 5 || text != "value" {
				t.Fatalf("control: %d %s", n, text)
			}
			for range 3 {
				if n, text := r.call("kb_get", wrong...); n >= 0 || strings.Contains(text, "value") {
					t.Errorf("%q, round %d: %d %s", wrong, round, n, text)
				}
			}
		}
	}
	r := maskRig(t, "kb:read:notes")
	r.kb["notes/k"] = "value"
	list := func(ptr, n uint64) int64 {
		copy(r.mem[16:], "notes")
		stack := []uint64{16, 5, ptr, n, outAt, outRoom}
		if err := r.funcs["kb_list"].Call(t.Context(), r.mem, stack); err != nil {
			t.Fatal(err)
		}
		return int64(stack[0])
	}
	for range 2 {
		if n := list(32, 0); n < 0 {
			t.Fatalf("control: %d", n)
		}
		if n := list(1<<31, 4); n != -int64(Fault) {
			t.Errorf("a pointer beyond the memory after an empty argument: %d", n)
		}
	}
	copy(r.mem[16:], "notesk")
	for _, where := range []uint64{outAt, 1 << 31, 1 << 31} {
		stack := []uint64{16, 5, 21, 1, where, outRoom}
		if err := r.funcs["kb_get"].Call(t.Context(), r.mem, stack); err != nil ||
			(int64(stack[0]) == -int64(Fault)) != (where != outAt) {
			t.Errorf("an answer to %d: %d, %v", where, int64(stack[0]), err)
		}
	}
}

// Once a record could not be kept every call ends the run, whichever way it takes: the
// same as before, one that is refused unread, one that is hidden or that may not be
// made any more.
//
//rlp:holds R71
func TestNoCallGoesOnUnrecorded(t *testing.T) {
	hide := &caps.Layer{
		Name: "l",
		Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: "session:turn_next"}}},
	}
	for name, c := range map[string]struct {
		grant  string
		layer  *caps.Layer
		repeat bool
		call   func(r *rig, ctx context.Context) (int64, error)
	}{
		"an answer":           {"kb:read:notes", nil, false, get("notes", "k")},
		"no answer":           {"kb:read:notes", nil, false, get("notes", "empty")},
		"the same":            {"kb:read:notes", nil, true, get("notes", "k")},
		"the same, no answer": {"kb:read:notes", nil, true, get("notes", "empty")},
		"the same refusal":    {"kb:read:other", nil, true, get("notes", "k")},
		"a refusal":           {"kb:read:other", nil, false, get("notes", "k")},
		"unread": {"kb:read:notes", nil, false, func(r *rig, ctx context.Context) (int64, error) {
			return r.at(ctx, "kb_get", 1<<31, 5, 16, 1)
		}},
		"hidden, of a free one": {"kb:read:notes", hide, false, func(r *rig, ctx context.Context) (int64, error) {
			return r.at(ctx, "turn_next")
		}},
	} {
		r := newRig(t, c.grant)
		r.kb["notes/k"], r.kb["notes/empty"] = "value", ""
		if c.layer != nil {
			must(t, r.gate.Hold(c.layer))
		}
		if c.repeat {
			if _, err := c.call(r, t.Context()); err != nil {
				t.Fatalf("control: %s: %v", name, err)
			}
		}
		r.log.Room = 0
		if n, err := c.call(r, t.Context()); !errors.Is(err, audit.ErrFull) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// at calls a function with these numbers and a place for its answer.
func (r *rig) at(ctx context.Context, name string, args ...uint64) (int64, error) {
	stack := append(args, outAt, outRoom)
	err := r.funcs[name].Call(ctx, r.mem, stack)
	return int64(stack[0]), err
}

// get reads a value.
func get(domain, key string) func(*rig, context.Context) (int64, error) {
	return func(r *rig, ctx context.Context) (int64, error) {
		copy(r.mem[16:], domain+key)
		return r.at(ctx, "kb_get", 16, uint64(len(domain)), 16+uint64(len(domain)), uint64(len(key)))
	}
}

// Wherever a call is told that the run may have no more held for it, the run ends with
// that: for what it is answered, and what it was answered before.
func TestACallEndsWhereNothingMoreIsHeld(t *testing.T) {
	const large = 256 << 10
	long := strings.Repeat("v", large)
	for name, prepare := range map[string]func(*rig){
		"what is answered":    func(r *rig) { r.kb["notes/k"] = long },
		"what is there still": func(r *rig) { r.host.out = make([]byte, large) },
	} {
		for _, most := range []int64{0, 1 << 20} {
			r := newRig(t, "kb:read:notes")
			r.kb["notes/k"] = "value"
			prepare(r)
			h := &holding{most: most}
			n, err := get("notes", "k")(r, abi.WithHolder(t.Context(), h))
			if errors.Is(err, errHeld) != (most == 0) || (n < 0) && most > 0 {
				t.Errorf("%s: room for %d: %d, %v", name, most, n, err)
			}
		}
	}
}

// A call that may not be made any more takes none of what is left, and its hint is its
// own, not that of a condition which refused another.
func TestAHintIsOfItsOwnRefusal(t *testing.T) {
	r := newRig(t, "kb:write:drafts")
	r.under(caps.KBMaxValueBytes, 4)
	if n, d := r.denial("kb_put", "other", "k", "fives"); n != -int64(Acces) || strings.Contains(d.Hint, "constraints") {
		t.Errorf("not granted: %d %+v", n, d)
	}
	r.limit(caps.KBWriteBytes, 2)
	r.host.budget.bound(r.host.cfg.Limits)
	if n, d := r.denial("kb_put", "drafts", "k", "four"); n != -int64(Dquot) || strings.Contains(d.Hint, "constraints") {
		t.Errorf("over the limit: %d %+v", n, d)
	}
	n, d := r.denial("kb_put", "drafts", "k", "fives")
	if n != -int64(Dquot) {
		t.Errorf("%d %+v", n, d)
	}
	hinted(t, d.Hint, "kb.max_value_bytes")
	r.gate.Bound(0)
	for range 2 {
		if n, d := r.denial("log", "info", "text"); n != -int64(Dquot) || !strings.Contains(d.Hint, "hostcalls_max") {
			t.Errorf("%d %+v", n, d)
		}
	}
}
