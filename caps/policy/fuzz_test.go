package policy_test

import (
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// FuzzParseBase: never a panic, every finding has its place in the file and a
// known code, and nil is returned exactly when one is an error.
//
//rlp:holds P20
func FuzzParseBase(f *testing.F) {
	for _, c := range refusals() {
		f.Add([]byte(c.text))
	}
	f.Add([]byte(full))
	f.Add([]byte(withParams))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, findings := policy.ParseBase("f", data, options)
		checkFindings(t, data, findings, b == nil)
		if b == nil {
			return
		}
		set, err := caps.Base(b.Entries, b.Limits)
		if err != nil {
			t.Fatalf("the algebra does not take what was read: %v", err)
		}
		for _, s := range set.Strings() {
			if _, err := caps.ParseGrant(s); err != nil {
				t.Fatalf("%q cannot be read again: %v", s, err)
			}
		}
	})
}

// FuzzParseLayer: as above, and no layer widens a base.
//
//rlp:holds P20
func FuzzParseLayer(f *testing.F) {
	for _, c := range refusals() {
		f.Add([]byte(c.text))
	}
	for seed := range uint64(20) {
		f.Add([]byte(newGen(seed).text(50, true).String()))
	}
	for _, text := range layerFiles() {
		f.Add([]byte(text))
	}
	all := asks()
	f.Fuzz(func(t *testing.T, data []byte) {
		o, findings := policy.ParseLayer("l", "f", data, options)
		checkFindings(t, data, findings, o == nil)
		if o == nil {
			return
		}
		b := base(t, broad)
		set, _, err := b.Narrow(o.Layer)
		if err != nil {
			t.Fatalf("the algebra does not take what was read: %v", err)
		}
		for _, a := range all {
			if r := a.request(); set.Check(r).Allow && !b.Check(r).Allow {
				t.Fatalf("%+v is widened", a)
			}
		}
		limitsAreLower(t, b.Limits(), set.Limits(), string(data))
	})
}

func checkFindings(t *testing.T, data []byte, findings []policy.Finding, refused bool) {
	t.Helper()
	if refused != policy.HasErrors(findings) {
		t.Fatalf("refused %v with %v", refused, findings)
	}
	lines := strings.Split(string(data), "\n")
	known := policy.Codes()
	for _, f := range findings {
		if !slices.ContainsFunc(known, func(c policy.CodeInfo) bool { return c.Code == f.Code && c.Severity == f.Severity }) {
			t.Fatalf("unknown code: %v", f)
		}
		if f.Path == "f" && f.Line > 0 && (f.Line > len(lines) || f.Column < 1 || f.Column > len([]rune(lines[f.Line-1]))+1) {
			t.Fatalf("outside the file: %v", f)
		}
	}
}
