package run

import (
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/audit"
)

// A call that names what can be no path is a call: recorded, so that nothing in it
// steers who reads the record, and counted, whatever the run holds.
//
//rlp:holds C15
func TestARejectedPathIsACall(t *testing.T) {
	set, err := caps.Base([]caps.Entry{entryOf(t, "fs:read:/")}, caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	log := audit.NewMemory()
	g, err := gate.New(set, log, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: 3})
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPathGate(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, target, reason string }{
		{"/a\x00b", `"/a\x00b"`, "invalid_request"},
		{"", `""`, "invalid_request"},
		{strings.Repeat("a", 4096), `"` + strings.Repeat("a", 256) + `"...`, "invalid_request"},
		{"/\u202e\xff", `"/\u202e\xff"`, "budget_exhausted"},
	} {
		p.Reject("path_open", []byte(c.text))
		d := log.Decisions[len(log.Decisions)-1]
		if !d.Deny || d.Op != "path_open" || d.Target != c.target || d.Reason != c.reason {
			t.Errorf("%.8q: %+v", c.text, d)
		}
	}
	if g.Calls() != 4 || len(log.Decisions) != 4 || !g.Spent() || g.Counts(caps.FS).Denied != 4 {
		t.Errorf("%d calls, %d records, %+v", g.Calls(), len(log.Decisions), g.Counts(caps.FS))
	}
}
