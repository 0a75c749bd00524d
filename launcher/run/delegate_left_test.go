package run

import (
	"encoding/json"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// The leases of an agent are one account for all its runs below one root: each
// begins with what those before it have left, and takes nothing from the policy.
func TestALaunchBeginsWithWhatIsLeftOfLeases(t *testing.T) {
	counted, other, ever := entryOf(t, "kb:write:drafts"), entryOf(t, "kb:write:notes"), entryOf(t, "kb:read:notes")
	leased := &caps.Layer{Name: "leased", Leases: []caps.Lease{
		{Entry: counted, MaxUses: 5}, {Entry: other, MaxUses: 2}, {Entry: ever, MaxUses: caps.Unbounded},
	}}
	plain := &caps.Layer{Name: "plain"}
	used := map[caps.Grant]int64{counted.Grant: 3, other.Grant: 9, ever.Grant: 100}
	got := leftOf([]*caps.Layer{plain, leased}, used)
	if len(got) != 2 || got[0] != plain || got[1] == leased {
		t.Fatalf("layers %v", got)
	}
	for i, want := range []int64{2, 0, caps.Unbounded} {
		if left := got[1].Leases[i].MaxUses; left != want {
			t.Errorf("%v: %d uses left, want %d", got[1].Leases[i].Grant, left, want)
		}
	}
	if leased.Leases[0].MaxUses != 5 {
		t.Errorf("the policy itself has %d uses left", leased.Leases[0].MaxUses)
	}
	if again := leftOf([]*caps.Layer{plain, leased}, nil); again[1] != leased {
		t.Error("nothing was used, and the layer is another one")
	}
}

// What is long is left out of a report in order, and what comes after stays.
func TestWhatIsLeftOutOfAReport(t *testing.T) {
	long := []string{strings.Repeat("x", 4000)}
	for name, c := range map[string]struct {
		fill func(r *Report)
		gone func(r *Report) bool
	}{
		"changes": {func(r *Report) { r.Changes = []Change{{Capability: long[0]}} }, func(r *Report) bool {
			return len(r.Changes) == 0
		}},
		"base":   {func(r *Report) { r.Base = long }, func(r *Report) bool { return len(r.Base) == 0 }},
		"except": {func(r *Report) { r.Except = long }, func(r *Report) bool { return len(r.Except) == 0 }},
		"warnings": {func(r *Report) { r.Warnings = long }, func(r *Report) bool {
			return len(r.Warnings) == 1 &&
				len(r.Warnings[0]) < 100
		}},
		"violations": {func(r *Report) { r.Violations = []Violation{{Message: long[0]}} }, func(r *Report) bool {
			return len(r.Violations) == 0
		}},
		"stderr": {func(r *Report) { r.Stderr = long[0] }, func(r *Report) bool {
			return r.Stderr == "" &&
				r.Usage.StderrTruncated
		}},
		"effective": {func(r *Report) { r.Effective = long }, func(r *Report) bool { return len(r.Effective) == 0 }},
		"stdout": {func(r *Report) { r.Stdout = long[0] }, func(r *Report) bool {
			return r.Stdout == "" &&
				r.Usage.StdoutTruncated
		}},
		"result": {func(r *Report) { r.Result = json.RawMessage(`"` + long[0] + `"`) }, func(r *Report) bool {
			return string(r.Result) == "null"
		}},
	} {
		r := &Report{RunID: aRun, Agent: "critic", Outcome: OK, ExitCode: 3}
		c.fill(r)
		whole, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if text := r.within(len(whole)); string(text) != string(whole) {
			t.Errorf("%s: what is as long as may be is cut to %d of %d bytes", name, len(text), len(whole))
		}
		var got Report
		if text := r.within(3000); json.Unmarshal(text, &got) != nil || len(text) > 3000 {
			t.Errorf("%s: %d bytes: %s", name, len(text), text)
		}
		if !c.gone(&got) || got.ExitCode != 3 || len(got.Warnings) != 1 || got.Message != "" {
			t.Errorf("%s: cut to %+v", name, got)
		}
	}
}
