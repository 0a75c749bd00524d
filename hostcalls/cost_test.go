package hostcalls

import (
	"strings"
	"testing"
)

// Every import has a price, and what it charges besides are the bytes of its
// arguments and of its response: those again for the call that is answered
// without being decoded, and none of what it refuses to look at.
//
//rlp:holds K35
func TestCallsAreChargedByTheirLengths(t *testing.T) {
	r := newRig(t, "kb:read:notes", "kb:write:notes")
	long := strings.Repeat("v", 300)
	r.kb["notes/a"], r.kb["notes/long"] = "value", long
	for _, c := range []struct {
		name string
		args []string
		cost int64
		want int // bytes
	}{
		{"kb_get", []string{"notes", "a"}, costLookUp, len("notes" + "a" + "value")},
		{"kb_get", []string{"notes", "a"}, costLookUp, len("notes" + "a" + "value")},
		{"kb_get", []string{"tasks", "a"}, costLookUp, len("tasks" + "a")},
		// and read by response_read
		{"kb_get", []string{"notes", "long"}, costLookUp, len("notes"+"long") + len(long) + len(long)},
		{"kb_put", []string{"notes", "b", long}, costEffect, len("notes"+"b") + len(long) + len("1")},
		{"log", []string{"info", "hello"}, costCall, len("info" + "hello")},
		{"result", []string{`{"a":1}`}, costCall, len(`{"a":1}`)},
	} {
		f := r.funcs[c.name]
		*f.Moved = 0
		n, rest := r.call(c.name, c.args...)
		want := int64(c.want)
		if n < 0 {
			want += int64(len(rest)) // the explanation that was asked for
		}
		if f.Cost != c.cost || *f.Moved != want {
			t.Errorf("%s%.20q costs %d and moved %d, want %d and %d", c.name, c.args, f.Cost, *f.Moved, c.cost, want)
		}
	}
	f := r.funcs["kb_get"]
	*f.Moved = 0
	if err := f.Call(t.Context(), r.mem, []uint64{1 << 30, 1 << 30, 0, 0, 0, 0}); err != nil || *f.Moved != 0 {
		t.Errorf("%v: what is not there moved %d bytes", err, *f.Moved)
	}
	for name, f := range r.funcs {
		if f.Cost < costCall || f.Moved == nil {
			t.Errorf("%s costs %d", name, f.Cost)
		}
	}
}
