package hostcalls

import (
	"context"
	"errors"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
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

// Calls that differ in any byte, in how their arguments are cut or where these lie are
// told apart: each gets the answer of its own, up to the last byte of the memory.
func TestKnownCallsAreToldApart(t *testing.T) {
	r := newRig(t, "kb:read:notes", "kb:read:note")
	keys := []string{
		"k", "sk", "01234567", "012345678", "0123456x", "01234567890123456", "01234567x90123456", "0123456789012345x",
	}
	for _, domain := range []string{"notes", "note"} {
		for _, key := range keys {
			r.kb[domain+"/"+key] = domain + " " + key
		}
	}
	for round := range 3 {
		for i, key := range keys {
			for _, other := range []string{key, keys[(i+1)%len(keys)], key, key} {
				for _, domain := range []string{"notes", "note"} {
					if n, text := r.call("kb_get", domain, other); text != domain+" "+other {
						t.Fatalf("round %d: %s/%s: %d %q", round, domain, other, n, text)
					}
				}
			}
			at := uint64(copy(r.mem[len(r.mem)-5-len(key):], "notes"+key))
			at = uint64(len(r.mem)) - at
			if n, err := r.at(t.Context(), "kb_get", at, 5, at+5, uint64(len(key))); n != int64(6+len(key)) || err != nil {
				t.Fatalf("round %d: %s at the end: %d, %v", round, key, n, err)
			}
		}
	}
}

// An unrepeating journal has every record written whole.
type unrepeating struct{ *audit.Memory }

func (unrepeating) Again(audit.Mark) bool { return false }

// A call whose record is written whole again, as after half a second, stays at its
// place: others that are known are not forgotten for it.
func TestACallHasOnePlace(t *testing.T) {
	r := newRig(t, "kb:read:notes")
	g, err := gate.New(r.gate.Set(), unrepeating{r.log}, gate.Options{KeepAllowed: true, MaxCalls: -1})
	must(t, err)
	op, err := g.Op(idle.name)
	must(t, err)
	l := idle.linked(New(Config{Gate: g}), op)
	answer := l.answer()
	for i := range 10 {
		copy(r.mem, "notes")
		must(t, answer(t.Context(), r.mem, []uint64{0, 5, outAt, outRoom}))
		if l.newest != 1 || len(r.log.Decisions) != i+1 {
			t.Fatalf("call %d is at place %d; %d records", i, l.newest, len(r.log.Decisions))
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
	r.host.budget.Bound(r.host.cfg.Limits)
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
