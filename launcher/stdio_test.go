package launcher

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
		"", "\n", "x\n", "x\r", "\x00", "x\b", "\x7f", "\v", "\f", "\x1c", "\u0085", "\u2028", "\ufeff", "\u200b", "  ", "\t", "\x1b[31m", "\x1b[1;1H", "x\x1b[2K\x1b[1G",
		"\x1bc", "\x1b]0;x\a", "\x1b]0;x\x1b\\", "\x1b[\n", "R\n", "RLP\n", "RL\x00", "\x1b\x1b[m",
	} {
		if got := guestText(t, before+"RLP_X", true); got != before+"guest: RLP_X\n" {
			t.Errorf("after %q: %q", before, got)
		}
	}
	for _, plain := range []string{"the RLP_X", "RRLP_X", "R RLP_X", "RLPRLP_X", "RLP X", "\x1b[31mx RLP_X"} {
		if got := guestText(t, plain, false); got != plain {
			t.Errorf("control: %q became %q", plain, got)
		}
	}
}

// What comes after the guest's text is a line of its own, however that ended.
func TestGuestLinesEnd(t *testing.T) {
	for text, want := range map[string]string{"": "", "x\n": "x\n", "x": "x\n", "50%\r": "50%\r\n", "RL": "RL\n", "\x1b[": "\x1b[\n"} {
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

func TestGuestLinesLoseNothing(t *testing.T) {
	f := func(text []byte, cut uint8) bool {
		var out bytes.Buffer
		g := &guestLines{w: &out}
		k := int(cut) % (len(text) + 1)
		_, _ = g.Write(text[:k])
		_, _ = g.Write(text[k:])
		_ = g.Close()
		return bytes.Equal(bytes.ReplaceAll(out.Bytes(), []byte("guest: RLP_"), []byte("RLP_")), text)
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
