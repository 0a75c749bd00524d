package caps

import (
	"testing"

	"github.com/bits-and-blooms/bitset"
)

// Each family and mode has one bitset, a narrowed set is the AND of bitsets, and
// a check is the test of one bit: flipping that bit, and no other, flips the
// answer.
//
//rlp:holds R35
func TestACheckIsTheTestOfOneBit(t *testing.T) {
	var entries []Entry
	var requests []Request
	for _, s := range []string{
		"fs:read:/a", "fs:write:/a/b", "fs:delete:/a/b", "network:https:a.example", "network:http:a.example:8080",
		"time:read:*", "kb:read:notes",
		"kb:read:notes_raw", "kb:write:drafts", "secrets:read:runloop/a/b", "model:use:openai:gpt", "process:exec:/bin/a",
		"env:read:PATH", "mcp:call:x", "agents:launch:c",
	} {
		g, err := ParseGrant(s)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, Entry{Grant: g})
		requests = append(requests, g.requests()...)
	}
	set, err := Base(entries, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	asked := [numUniverses]bool{}
	for _, r := range requests {
		asked[r.Family] = true
		one := *set.in
		id := one.find(r)
		bits := one.eff[r.Family]
		if len(bits) != int(families[r.Family].modes) || bits[r.Mode] == nil || !bits[r.Mode].Test(uint(id)) ||
			!set.Check(r).Allow {
			t.Fatalf("%v: %d bitsets, bit %d not set, or not allowed", r, len(bits), id)
		}
		cleared := bits[r.Mode].Clone().Clear(uint(id))
		if bits[r.Mode].Count()-cleared.Count() != 1 {
			t.Fatalf("%v: more than a bit was cleared", r)
		}
		one.eff[r.Family] = append([]*bitset.BitSet(nil), bits...)
		one.eff[r.Family][r.Mode] = cleared
		if (Set{&one}).Check(r).Allow {
			t.Errorf("%v is allowed without its bit", r)
		}
		for _, other := range requests {
			same := other.Family == r.Family && other.Mode == r.Mode && one.find(other) == id
			if !same && !(Set{&one}).Check(other).Allow {
				t.Errorf("%v went with the bit of %v", other, r)
			}
		}
	}
	for f := range NumFamilies {
		if !asked[f] {
			t.Errorf("nothing was asked of %s", f)
		}
	}
	deny, err := ParseGrant("fs:write:/a/b")
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := set.Narrow(&Layer{Name: "x", Deny: []Entry{{Grant: deny}}})
	if err != nil {
		t.Fatal(err)
	}
	for m, b := range after.in.eff[FS] {
		vote := after.in.steps[0].votes[FS][m]
		want := set.in.eff[FS][m]
		if vote != nil {
			want = want.Intersection(vote)
		}
		if !b.Equal(want) {
			t.Errorf("mode %d is not the AND of what was held and the vote of the layer", m)
		}
	}
}
