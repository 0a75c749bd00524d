package hostcalls

import (
	"fmt"
	"strings"
	"testing"
)

// A value of a secret is taken out of what any call answers, also where the run
// sees the stored value as it is; and out of what a guest passes to it.
func TestNoAnswerHasAValue(t *testing.T) {
	r := maskRig(t, seeing...)
	r.host.cfg.Secrets = oneSecret{"rlsec_abc", "hunter2", "runloop/door/word"}
	r.kb["contacts/k"], r.kb["contacts/a hunter2"] = "it is hunter2", "v"
	for _, call := range [][]string{{"kb_get", "contacts", "k"}, {"kb_list", "contacts", "a"}} {
		if n, got := r.whole(call[0], call[1:]...); n < 0 || strings.Contains(got, "hunter") ||
			!strings.Contains(got, "[secret]") {
			t.Errorf("%v: %d %s", call, n, got)
		}
	}
	if r.whole("kb_put", "contacts", "new", "is hunter2"); r.kb["contacts/new"] != "is [secret]" {
		t.Errorf("stored %q", r.kb["contacts/new"])
	}
}

// The same call is answered the same, in a row and after another one: what it is
// refused for as well, and what did not fit into its place.
func TestTheSameCallIsAnsweredTheSame(t *testing.T) {
	r := newRig(t, "kb:read:notes", "kb:read:empty", "time:read:*")
	r.kb["notes/k"], r.kb["notes/long"], r.kb["empty/k"] = "value", strings.Repeat("v", 300), ""
	calls := [][]string{
		{"kb_get", "notes", "k"},
		{"kb_get", "tasks", "k"},
		{"kb_get", "notes", "none"},
		{"kb_get", "notes", "long"},
		{"kb_get", "empty", "k"},
		{"time_now"},
	}
	first := map[string]string{}
	for round := range 4 {
		for i := range calls {
			c := calls[(i*(round+1))%len(calls)]
			for range 3 {
				n, text := r.call(c[0], c[1:]...)
				got, key := fmt.Sprint(n, text), strings.Join(c, " ")
				if was, asked := first[key]; asked && was != got {
					t.Errorf("%s: %s, and %s before", key, got, was)
				}
				first[key] = got
			}
		}
	}
	for call, want := range map[string]string{"kb_get notes k": "5value", "kb_get empty k": "0", "time_now": "242"} {
		if first[call] != want {
			t.Errorf("%s: %s, want %s", call, first[call], want)
		}
	}
	if got := first["kb_get tasks k"]; !strings.HasPrefix(got, "-2") || !strings.Contains(got, `kb_read = [\"tasks\"]`) {
		t.Errorf("refused with %s", got)
	}
	if got := r.rest(); got != "" {
		t.Errorf("left over: %s", got)
	}
}

// Arguments that are too long, or not there, are refused for that.
func TestArgumentsThatAreNotTaken(t *testing.T) {
	r := newRig(t, "kb:write:notes")
	r.mem = make([]byte, 4<<20)
	for long, says := range map[int]string{
		MaxArguments + 1: "the arguments of log are at most",
		MaxArguments:     "at most 8 KiB",
	} {
		stack := []uint64{16, 4, 64, uint64(long - 4), outAt, outRoom}
		copy(r.mem[16:], "info")
		if err := r.funcs["log"].Call(t.Context(), r.mem, stack); err != nil || int64(stack[0]) != -int64(TooBig) ||
			!strings.Contains(r.rest(), says) {
			t.Errorf("%d bytes: %d, %v", long, int64(stack[0]), err)
		}
	}
	before := len(r.log.Decisions)
	for _, call := range []string{"log", "kb_delete"} {
		stack := []uint64{1 << 31, 4, 64, 4, outAt, outRoom}
		if err := r.funcs[call].Call(t.Context(), r.mem, stack); err != nil || int64(stack[0]) != -int64(Fault) ||
			!strings.Contains(r.rest(), "beyond the memory") {
			t.Errorf("%s: %d, %v", call, int64(stack[0]), err)
		}
	}
	if n := len(r.log.Decisions) - before; n != 1 { // what is free of the gate is in no record of it
		t.Errorf("%d decisions", n)
	}
}
