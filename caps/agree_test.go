package caps_test

import (
	"os"
	"testing"

	"runloop.dev/rlp/caps"
)

// agrees holds the set of s against the oracle on one request.
func (s stack) agrees(t *testing.T, r caps.Request) bool {
	t.Helper()
	want, got := s.refuser(r), s.set.Check(r)
	switch {
	case got.Allow != (want == -1):
		t.Fatalf("%v: bitsets %+v, oracle %d\nbase %v\nlayers %+v", r, got, want, s.oracle.base, s.layers)
	case want == -2 && got.Code != caps.InvalidRequest:
		t.Fatalf("%q is no request, yet %v", r.Name, got.Code)
	case want >= 0 && int(got.Layer) != want:
		t.Fatalf("%v: refused by layer %d, oracle says %d", r, got.Layer, want)
	case want >= 0 && (got.Code == caps.Granted || got.Code == caps.InvalidRequest):
		t.Fatalf("%v: denied as %v", r, got.Code)
	}
	return got.Allow
}

// TestCheckAgreesWithOracle holds P10 on 100,000 requests, on a million when
// RLP_SOAK is set.
//
//rlp:holds P10 C16
func TestCheckAgreesWithOracle(t *testing.T) {
	stacks, each := 2_000, 50
	switch {
	case os.Getenv("RLP_SOAK") == "1":
		stacks = 20_000
	case testing.Short():
		stacks = 200
	}
	allow, invalid := 0, 0
	for seed := range stacks {
		p := seeded(uint64(seed))
		s := p.stack(t, 5)
		for range each {
			r := p.request()
			if s.agrees(t, r) {
				allow++
			} else if s.refuser(r) == -2 {
				invalid++
			}
		}
	}
	total := stacks * each
	t.Logf("%d requests of %d stacks of layers: %d allowed, %d denied, %d no requests, 0 mismatches",
		total, stacks, allow, total-allow-invalid, invalid)
	if allow < total/50 || invalid < total/100 {
		t.Errorf("%d allowed and %d invalid of %d: the generator tests nothing", allow, invalid, total)
	}
}

func FuzzCheckAgreesWithOracle(f *testing.F) {
	f.Add([]byte("a base, some layers, and what is asked of them"))
	f.Add([]byte{8, 0, 0, 3, 1, 2, 0, 1, 5, 3, 1, 0, 2, 2, 1, 9, 3, 2, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := bytewise(data)
		s := p.stack(t, 3)
		for range 20 {
			s.agrees(t, p.request())
		}
	})
}
