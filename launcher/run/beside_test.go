package run

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// shared is what a reader has of a program's pieces, between which a line of rlp's own
// is written where one is empty.
func shared(events bool, pieces ...string) string {
	var out bytes.Buffer
	b := NewBeside(&out, events)
	pass := func(p []byte) bool { out.Write(p); return true }
	for _, p := range pieces {
		if p == "" {
			_, _ = b.Write([]byte("own\n"))
		} else {
			b.Pass([]byte(p), pass)
		}
	}
	b.Pass(nil, pass)
	return out.String()
}

// What a program writes passes as it is, but for lines that are made like rlp's.
//
//rlp:holds K30
func TestBeside(t *testing.T) {
	for name, c := range map[string]struct {
		events bool
		pieces []string
		want   string
	}{
		"as it is":          {false, []string{"a\nRL\n\x1b[2J\xff\r\n{}\n"}, "a\nRL\n\x1b[2J\xff\r\n{}\n"},
		"the marker":        {false, []string{"RLP_WASM_ERROR x\n"}, "guest: RLP_WASM_ERROR x\n"},
		"in pieces":         {false, []string{"a\nR", "L", "P_x\n"}, "a\nguest: RLP_x\n"},
		"behind blanks":     {false, []string{" \t RLP_x\n"}, " \t guest: RLP_x\n"},
		"behind a return":   {false, []string{"a\rRLP_x\n"}, "a\rguest: RLP_x\n"},
		"behind a word":     {false, []string{"a RLP_x RRLP_\n"}, "a RLP_x RRLP_\n"},
		"the beginning":     {false, []string{"RLP", ""}, "RLP\nown\n"},
		"cut off":           {false, []string{"RL"}, "RL"},
		"behind one of own": {false, []string{"a", "", "RLP_x"}, "a\nown\nguest: RLP_x"},
		"own lines":         {false, []string{"a\n", "", ""}, "a\nown\nown\n"},
		"an event":          {true, []string{"{\"event\":1}\n  {\n"}, "guest: {\"event\":1}\n  guest: {\n"},
		"letters":           {true, []string{"\u00e8{ \u00e9RLP_ \u00c5{"}, "\u00e8{ \u00e9RLP_ \u00c5{"},
		"other lines":       {true, []string{"\u2028{\u2029RLP_\u0085{"}, "\u2028guest: {\u2029guest: RLP_\u0085guest: {"},
		"no event":          {true, []string{"a {\n"}, "a {\n"},
	} {
		if got := shared(c.events, c.pieces...); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What is written piece by piece is the same, and none of it is lost.
func TestBesidePieceByPiece(t *testing.T) {
	var out bytes.Buffer
	b := NewBeside(&out, true)
	for _, p := range []string{"a\nRL", "P_x\n", "", "{", "}\nRL"} {
		if n, err := b.Theirs().Write([]byte(p)); n != len(p) || err != nil {
			t.Errorf("%q: %d, %v", p, n, err)
		}
	}
	if err := b.Close(); err != nil || out.String() != "a\nguest: RLP_x\nguest: {}\nRL" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// However a program writes, and whatever rlp says meanwhile, no line is rlp's but those
// that rlp wrote.
func TestNoLineOfAProgramsIsRlps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{
			"", "R", "L", "P", "_", "RLP_", "{", "{}", "x", " ", "\n", "\r", "\t", "\v", "\x00", "\u2028", "\u0085",
		})
		pieces := rapid.SliceOfN(part, 0, 30).Draw(t, "pieces")
		got := shared(true, pieces...)
		own := 0
		ends := func(c rune) bool { return strings.ContainsRune("\n\r\v\u2028\u0085\x00", c) }
		for _, line := range strings.FieldsFunc(got, ends) {
			trimmed := strings.TrimLeft(line, " \t")
			if strings.HasPrefix(trimmed, forged) || json.Valid([]byte(trimmed)) && strings.HasPrefix(trimmed, "{") {
				t.Fatalf("%q is %q", pieces, got)
			}
			if line == "own" {
				own++
			}
		}
		want := 0
		for _, p := range pieces {
			if p == "" {
				want++
			}
		}
		if own != want {
			t.Fatalf("%q is %q", pieces, got)
		}
	})
}
