package run

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

// pieces remembers each write, and refuses all of them if err is set.
type pieces struct {
	list []string
	err  error
}

func (p *pieces) Write(b []byte) (int, error) {
	p.list = append(p.list, string(b))
	return len(b), p.err
}

// What is decided is passed on at once, in one piece, and not at the end of the
// run; what may still become the word waits, and nothing is passed on for it.
func TestGuestLinesPassOnAsTheyCome(t *testing.T) {
	for text, want := range map[string]string{
		"10%\n": "10%\n", "x RLP_": "x RLP_", "x\nRL": "x\n", "RLP": "",
		"x\xe2": "x", "\x1b[3": "", "": "",
	} {
		var out pieces
		g := GuestLines(&out, false)
		if n, err := g.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
		if got := strings.Join(out.list, "|"); got != want || len(out.list) > 1 || want == "" && len(out.list) > 0 {
			t.Errorf("%q: passed on %q", text, out.list)
		}
	}
}

// Who passes text on learns that its reader has gone.
func TestGuestLinesSayThatNobodyReads(t *testing.T) {
	gone := errors.New("gone")
	g := GuestLines(&pieces{err: gone}, false)
	if n, err := g.Write([]byte("x")); n != 0 || !errors.Is(err, gone) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := g.Write([]byte("\nR")); n != 0 || !errors.Is(err, gone) {
		t.Errorf("%d, %v", n, err)
	}
	if err := g.Close(); !errors.Is(err, gone) {
		t.Errorf("closed with %v", err)
	}
}

// Sequences that colour, or erase to the end of a line, pass as they are; what only
// begins like one, and what is longer than any, is shown.
//
//rlp:holds K30
func TestGuestLinesKnowColours(t *testing.T) {
	longest := "\x1b[" + strings.Repeat("1", mostColour-2) + "m"
	for _, plain := range []string{"\x1b[m", "\x1b[97mx", "\x1b[0;1;40m", "\x1b[38:5:1m", "\x1b[K", "\x1b[0K", longest} {
		if got := guestText(t, plain, false); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
	}
	for _, other := range []string{
		"\x1bm", "\x1b3m", "\x1b31mRLP_", "\x1b[1[2m", "\x1b[>4m", "\x1b[<4m", "\x1b[?4m", "\x1b[ 4m", "\x1b[!4m", "\x1b[1K",
		"\x1b[2K", "\x1b[05K", "\x1b[00K", "\x1b[;0K",
		strings.Replace(longest, "m", "1m", 1), "\x1b\x1b[m",
	} {
		want := strings.Replace(other, "\x1b", `\x1b`, 1)
		if got := guestText(t, other, false); got != want {
			t.Errorf("%q became %q", other, got)
		}
	}
}

// What is shown, and what separates words, stands behind what came before it; the
// word that is broken by it is none.
//
//rlp:holds K30
func TestGuestLinesKeepTheOrder(t *testing.T) {
	for text, want := range map[string]string{
		"RL\vP_":            `RL\x0bP_`,
		"RL\u202eP_":        `RL\u202eP_`,
		"RL\u200eP_":        `RL\u200eP_`,
		"RL\ue000P_":        `RL\ue000P_`,
		"RL\u2800P_":        `RL\u2800P_`,
		"RL\ufffdP_":        "RL\ufffdP_",
		"RL\xffP_":          `RL\xffP_`,
		"RLP\t_":            "RLP\t_",
		"RLP _":             "RLP _",
		"RLP\t\u0332W":      "RLP\t" + `\u0332W`,
		"x\tRLP_":           "x\tRLP_",
		"XLP_W\rRLx":        "XLP_W\r\nRLx", // once: the line that it begins is a new one
		"\u05d0 RLP_1 RLP_": "\u05d0 guest: RLP_1 RLP_",
	} {
		if got := guestText(t, text, false); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// Every letter of the scripts that are written from right to left is known for
// one, and none of the others.
//
//rlp:holds K30
func TestScriptsThatAreWrittenToTheLeft(t *testing.T) {
	for _, script := range []*unicode.RangeTable{
		unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Samaritan, unicode.Mandaic,
		unicode.Adlam, unicode.Mende_Kikakui,
		unicode.Imperial_Aramaic, unicode.Phoenician, unicode.Lydian, unicode.Old_South_Arabian, unicode.Avestan,
		unicode.Old_Turkic, unicode.Hanifi_Rohingya, unicode.Cypriot,
	} {
		for r := range rune(unicode.MaxRune) {
			if unicode.Is(script, r) && unicode.IsLetter(r) && !toTheLeft(r) {
				t.Errorf("%U", r)
			}
		}
	}
	for _, ends := range [][2]rune{
		{0x590, 0x8ff},
		{0xfb1d, 0xfdff},
		{0xfe70, 0xfefe},
		{0x10800, 0x10fff},
		{0x1e800, 0x1efff},
	} {
		if toTheLeft(ends[0]-1) || !toTheLeft(ends[0]) || !toTheLeft(ends[1]) || toTheLeft(ends[1]+1) {
			t.Errorf("%U to %U", ends[0], ends[1])
		}
	}
	for _, script := range []*unicode.RangeTable{
		unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Devanagari,
		unicode.Han, unicode.Hiragana, unicode.Hangul, unicode.Thai,
	} {
		for r := range rune(unicode.MaxRune) {
			if unicode.Is(script, r) && toTheLeft(r) {
				t.Errorf("control: %U", r)
			}
		}
	}
}

// The word is found behind every blank that a reader strips, alone or in a row.
//
//rlp:holds K30
func TestGuestLinesFindTheWordBehindBlanks(t *testing.T) {
	blanks := []rune{'\t'}
	for _, span := range unicode.Zs.R16 {
		for r := rune(span.Lo); r <= rune(span.Hi); r += rune(span.Stride) {
			blanks = append(blanks, r)
		}
	}
	for _, r := range blanks {
		for _, before := range []string{string(r), "ok\n" + string(r), " " + string(r) + "\t"} {
			if got, want := guestText(t, before+forged+"ERROR", false), before+prefix+forged+"ERROR"; got != want {
				t.Errorf("%q became %q", before, got)
			}
		}
		if plain := string(r) + "x " + forged; guestText(t, plain, false) != plain {
			t.Errorf("control: behind another word, %q changes", plain)
		}
	}
}
