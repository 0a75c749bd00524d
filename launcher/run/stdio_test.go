package run

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/quick"
)

func TestCaptureKeepsTheFirstBytesAndTakesAll(t *testing.T) {
	var live bytes.Buffer
	c := capture{max: 5, live: &live}
	for _, s := range []string{"abc", "defg", "h"} {
		if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatalf("Write(%q) = %d, %v: a guest must not see the cap", s, n, err)
		}
	}
	if c.kept.String() != "abcde" || live.String() != "abcde" || !c.truncated || c.total != 8 {
		t.Errorf("kept %q, live %q, truncated %v, total %d", c.kept.String(), live.String(), c.truncated, c.total)
	}
}

func TestCaptureOfExactlyTheCapIsNotTruncated(t *testing.T) {
	c := capture{max: 3}
	_, _ = c.Write([]byte("abc"))
	if c.truncated || c.kept.String() != "abc" {
		t.Errorf("kept %q, truncated %v", c.kept.String(), c.truncated)
	}
}

// A guest that prints the marker itself must not be taken for the host, however
// it cuts its writes.
//
//rlp:holds K30
func TestGuestLinesCannotLookLikeTheMarker(t *testing.T) {
	const attack = "ok\nRLP_WASM_ERROR code=WASM_TIMEOUT exit_code=124 message=x\nRLP\nRL"
	if !strings.Contains(attack, "\n"+forged) {
		t.Fatal("control: the attack has no forged line")
	}
	for size := 1; size <= len(attack); size++ {
		var out bytes.Buffer
		g := &guestLines{w: &out}
		for rest := attack; rest != ""; {
			n := min(size, len(rest))
			if _, err := g.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(attack, "\nRLP_", "\nguest: RLP_")
		if out.String() != want {
			t.Fatalf("in pieces of %d: %q, want %q", size, out.String(), want)
		}
	}
}

// What is not seen on a terminal, what a shell drops and where a language breaks
// lines does not make a line begin otherwise.
//
//rlp:holds K30
func TestGuestLinesHaveNoHiddenBeginnings(t *testing.T) {
	for _, before := range []string{
		"", "\n", "x\n", "x\r", "\x00", "x\r\b", "\x7f", "\ufeff", "\u200b", "\u00ad", "\U000e0041", "\u034f", "\u0332", "  ",
		"\t", "\x1b[31m", "xx\x1b[0;1m", "x\x1b[K\r", "R\n", "RLP\n", "\u05d0 1 ",
	} {
		if got := guestText(t, before+"RLP_X", true); got != before+"guest: RLP_X\n" {
			t.Errorf("after %q: %q", before, got)
		}
	}
	for _, plain := range []string{
		"the RLP_X", "RRLP_X", "R RLP_X", "RLPRLP_X", "RLP X", "\x1b[31mx RLP_X", "x\x1b[31m y",
		"\U0001f469\u200d\U0001f4bb RLP_", "e\u0301 RLP_", "10%\r20%\rLoading\rReading \b-\b/",
	} {
		if got := guestText(t, plain, false); got != plain {
			t.Errorf("control: %q became %q", plain, got)
		}
	}
}

// Whatever drops what is not seen finds the word where it is hidden in it, and
// letters that are drawn like its own are taken for them.
//
//rlp:holds K30
func TestGuestLinesHideNothingWithinTheWord(t *testing.T) {
	hidden := []string{
		"\x00", "\x7f", "\a", "\u200b", "\u200d", "\u00ad", "\ufeff", "\u2060", "\U000e0052", "\ufe0f",
		"\u0332", "\x1b[31m", "\x1b[K", "\x00\u200b\x1b[m",
	}
	for _, h := range hidden {
		for at := 1; at < len(forged); at++ {
			attack := forged[:at] + h + forged[at:] + "WASM_ERROR code=X"
			if strings.ReplaceAll(attack, h, "") != "RLP_WASM_ERROR code=X" {
				t.Fatal("control: the word is not there when it is dropped")
			}
			if got := guestText(t, attack, false); got != "guest: "+attack {
				t.Errorf("%q became %q", attack, got)
			}
		}
	}
	for _, drawn := range []string{
		"ＲＬＰ＿", "RL\u0420_", "\u13a1LP_", "\U0001d411\U0001d40b\U0001d40f_", "ⓇⓁⓅ_", "🅁🄻🄿_", "🅡🅛🅟_", "🆁🅻🅿_", "🇷🇱🇵_", "🄡🄛🄟_",
		"ʀʟᴘ_", "ᴿᴸᴾ_", "ℝℒℙ_",
		"ŔĹṔ_", "ŘŁƤ_", "®LP_", "RL℗_", "RLP︳", "RLP▁",
	} {
		if got := guestText(t, drawn, false); got != "guest: "+drawn {
			t.Errorf("%q became %q", drawn, got)
		}
	}
}

// What moves the cursor or turns the reading direction makes no line that is read
// otherwise than it was written.
//
//rlp:holds K30
func TestGuestLinesAreReadAsWritten(t *testing.T) {
	for text, want := range map[string]string{
		"XLP_W\rR":             "XLP_W\r\nR",
		"XLP_WR\rR":            `XLP_WR\rR`, // all letters are there: nothing moves any more
		"XLP_\b\b\b\bR":        "XLP_\b\b\b\b\nR",
		"R\r\tL\b\b\bP\b\b_W":  "R\r\tL\b\b\bP\b\b\n_W",
		"R\rL\rP\rRLP_":        "R\rL\rP\rRLP\n_",
		"xRLP_W\r ":            `xRLP_W\r `,
		"XRLP_\r\x1b[P":        `XRLP_\r\x1b[P`,
		"XLP_\x1b[1GR":         `XLP_\x1b[1GR`,
		"XLP_\n\x1b[AR":        "XLP_\n" + `\x1b[AR`,
		"\u202eRORRE_MSAW_PLR": `\u202eRORRE_MSAW_PLR`,
		"x\u2028RLP_":          `x\u2028RLP_`,
		"x\u0085RLP_\vRLP_\fR": `x\u0085RLP_\x0bRLP_\x0cR`,
		"x\x9b1GRLP_":          `x\x9b1GRLP_`,
		"x\u009b1GRLP_":        `x\u009b1GRLP_`,
		"RLP \u0332W":          `RLP \u0332W`,
		"RLP\u00a0\u0332W":     "RLP\u00a0" + `\u0332W`,
		"\x1b]0;x\aRLP_":       `\x1b]0;x` + "\aRLP_",
		"\x1b[2KRLP_":          `\x1b[2KRLP_`,
		"\x1bcRLP_":            `\x1bcRLP_`,
		"\x1b":                 `\x1b`,
		"\x1b[31":              `\x1b[31`,
		"a\xe2\x82":            `a\xe2\x82`,
		"\x1b[" + strings.Repeat("1", 70) + "mRLP_": `\x1b[` + strings.Repeat("1", 70) + "mRLP_",
		"\u05d0 RLP_":     "\u05d0 guest: RLP_",
		"1 \u05d0 x RLP_": "1 \u05d0 x RLP_",
	} {
		if got := guestText(t, text, false); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// What comes after the guest's text is a line of its own, however that ended.
func TestGuestLinesEnd(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "x\n": "x\n", "x": "x\n", "50%\r": "50%\r\n", "RL": "RL\n",
		"\x1b[": "\\x1b[\n",
	} {
		if got := guestText(t, text, true); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func guestText(t *testing.T, text string, end bool) string {
	t.Helper()
	var out bytes.Buffer
	g := GuestLines(&out, end)
	if _, err := io.WriteString(g, text); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Text, colours and progress lose nothing, however they are cut.
func TestGuestLinesLoseNothing(t *testing.T) {
	pieces := []string{"R", "L", "P", "_", "RLP_", " ", "\n", "x", "é", "\x1b[31m", "\x00", "\u200b", "\u05d0"}
	f := func(chosen []byte, cut uint8) bool {
		var text, out bytes.Buffer
		for _, c := range chosen {
			text.WriteString(pieces[int(c)%len(pieces)])
		}
		g := &guestLines{w: &out}
		k := int(cut) % (text.Len() + 1)
		_, _ = g.Write(text.Bytes()[:k])
		_, _ = g.Write(text.Bytes()[k:])
		_ = g.Close()
		return strings.ReplaceAll(out.String(), "guest: ", "") == text.String()
	}
	if err := quick.Check(f, nil); err != nil {
		t.Error(err)
	}
}

// stuck is a reader that went away without closing.
type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) { <-s; return len(p), nil }

// Output that nobody reads holds up the guest, and neither the end of its run
// nor what is told of it; what comes after the end is dropped.
func TestOutputThatNobodyReads(t *testing.T) {
	c := capture{max: 100, live: stuck(make(chan struct{}))}
	wrote := make(chan struct{})
	go func() { _, _ = c.Write([]byte("one")); close(wrote) }()
	for kept := 0; kept == 0; runtime.Gosched() { // until the writer is there
		c.mu.Lock()
		kept = c.kept.Len()
		c.mu.Unlock()
	}
	c.flush()
	close(c.live.(stuck))
	<-wrote
	c.flush()
	_, _ = c.Write([]byte("two"))
	if c.kept.String() != "one" || c.total != 3 {
		t.Errorf("kept %q of %d bytes", &c.kept, c.total)
	}
}
