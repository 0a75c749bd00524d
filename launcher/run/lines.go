package run

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"runloop.dev/rlp/internal/base/printable"
)

// guestLines passes a guest's stderr on as it comes, so that nothing in it can be
// taken for a line of rlp's own, by a program or by a reader.
//
// What is passed on is text whose order is the order in which it is seen: what
// moves the cursor, turns the reading direction or makes lines for some readers
// only is shown as [printable.Line] shows it. So a line begins with what came
// first in it that is seen at all, and if that reads RLP_ the line is prefixed.
// Something that is not seen between those letters prefixes it at once: whatever
// drops it would find the word.
//
// A carriage return and a backspace, which progress is shown by, pass in lines
// that cannot spell the word: those that lack one of its letters. What comes
// before a change of colour may have been drawn in that of the ground, and what
// is written from right to left is drawn behind what follows: neither is taken
// for a line's beginning.
type guestLines struct {
	w io.Writer

	out     []byte // what is decided and not yet passed on
	partial []byte // of a character, or of a sequence that colours
	held    []byte // what has come of "RLP_" where a line begins
	letters int    // how many of its letters that is
	open    bool   // the current line has something
	blank   bool   // what came last is a blank
	text    bool   // something to be seen came since the line began
	moved   bool   // the cursor went back in this line
	seen    uint8  // letters of the word in this line, a bit each
	turned  bool   // since a letter that is written from right to left none came of the other kind
	end     bool   // Close ends an unfinished line
}

const (
	forged  = "RLP_"
	allSeen = 1<<len(forged) - 1

	escapeByte = 0x1b

	// mostColour bounds a sequence that colours.
	mostColour = 64
)

func (g *guestLines) Write(p []byte) (int, error) {
	for _, b := range p {
		g.partial = append(g.partial, b)
		g.decide(false)
	}
	if err := g.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// decide takes what is whole of what has come, or all of it at the end.
func (g *guestLines) decide(end bool) {
	for len(g.partial) > 0 {
		p := g.partial
		n := 0
		switch {
		case p[0] == escapeByte:
			n = colour(p)
		case utf8.FullRune(p):
			_, n = utf8.DecodeRune(p)
		}
		if n == 0 && !end {
			return
		}
		n = max(n, 1)
		g.put(p[:n])
		g.partial = append(g.partial[:0], p[n:]...)
	}
}

// colour is how long a sequence is that colours or erases to the end of the line:
// ESC [, digits and separators, m or K; 0 if that is not yet known, and 1, the
// escape alone, if it is another.
func colour(p []byte) int {
	for i, b := range p {
		switch {
		case i == 0, i == 1 && b == '[':
		case i > 1 && (b == 'm' || b == 'K' && (i == 2 || i == 3 && p[2] == '0')):
			return i + 1
		case i > 1 && i < mostColour && (b >= '0' && b <= '9' || b == ';' || b == ':'):
		default:
			return 1
		}
	}
	return 0
}

func (g *guestLines) put(p []byte) {
	r, n := utf8.DecodeRune(p)
	switch {
	case r == '\n':
		g.release("")
		g.out = append(g.out, '\n')
		g.begin()
		g.open = false
		return
	case r == '\r', r == '\b':
		g.move(p)
	case g.blank && unicode.In(r, unicode.Mn, unicode.Me): // a low line, for one, and above nothing
		g.show(fmt.Appendf(nil, `\u%04x`, r))
	case r == escapeByte && len(p) > 1, isBlank(r), drawnAsNothing(r):
		g.unseen(r, p)
	case r == utf8.RuneError && n == 1:
		g.show(printable.AppendByte(nil, p[0]))
	case printable.Hidden(r):
		g.show(printable.AppendRune(nil, r))
	default:
		g.letter(r, p)
	}
	g.open, g.blank = true, isBlank(r)
}

// isBlank reports whether r takes a place and shows nothing: a reader who strips a
// line strips it.
func isBlank(r rune) bool { return r == '\t' || unicode.Is(unicode.Zs, r) }

// drawnAsNothing reports whether r is passed on as it is and takes no place of its
// own: bytes that terminals drop, marks above letters, joiners.
func drawnAsNothing(r rune) bool {
	switch {
	case r == 0, r == '\a', r == 0x7f, unicode.In(r, unicode.Mn, unicode.Me):
		return true
	case unicode.Is(unicode.Bidi_Control, r):
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

func (g *guestLines) begin() {
	g.text, g.moved, g.turned, g.blank, g.seen = false, false, false, false, 0
}

func (g *guestLines) unseen(r rune, p []byte) {
	switch {
	case isBlank(r):
		g.release("")
	case g.letters > 0:
		g.release(prefix)
	case r == escapeByte:
		g.text = false
	}
	g.out = append(g.out, p...)
}

const prefix = "guest: "

// show passes on what stands for something that is not passed on.
func (g *guestLines) show(p []byte) {
	g.release("")
	g.out, g.text = append(g.out, p...), true
}

// move takes a carriage return or a backspace.
func (g *guestLines) move(p []byte) {
	if g.release(""); g.seen == allSeen {
		g.show(printable.AppendRune(nil, rune(p[0])))
		return
	}
	g.out, g.moved, g.text = append(g.out, p...), g.seen != 0, false
}

func (g *guestLines) letter(r rune, p []byte) {
	at := strings.IndexRune(forged, printable.Drawn(r))
	if at >= 0 && g.moved && g.seen|1<<at == allSeen {
		g.release("")
		g.out = append(g.out, '\n')
		g.begin()
	}
	if at >= 0 {
		g.seen |= 1 << at
	}
	if g.text || at != g.letters {
		g.release("")
		g.out, g.text = append(g.out, p...), g.starts(r)
		return
	}
	g.held = append(g.held, p...)
	if g.letters++; g.letters == len(forged) {
		g.release(prefix)
	}
}

// starts reports whether what follows r in a line is drawn behind something.
func (g *guestLines) starts(r rune) bool {
	switch {
	case toTheLeft(r):
		g.turned = true
		return false
	case unicode.IsLetter(r):
		g.turned = false
	}
	return g.text || !g.turned
}

// toTheLeft reports whether r is of a block that is written from right to left.
func toTheLeft(r rune) bool {
	switch {
	case r < 0x590:
		return false
	case r <= 0x8ff, r >= 0xfb1d && r <= 0xfdff, r >= 0xfe70 && r <= 0xfefe, r >= 0x10800 && r <= 0x10fff, r >= 0x1e800 &&
		r <= 0x1efff:
		return true
	}
	return false
}

// release gives up what was held, behind a prefix if it was the marker's.
func (g *guestLines) release(behind string) {
	if g.letters == 0 {
		return
	}
	g.out = append(append(g.out, behind...), g.held...)
	g.held, g.letters, g.text = g.held[:0], 0, true
}

func (g *guestLines) flush() error {
	if len(g.out) == 0 {
		return nil
	}
	_, err := g.w.Write(g.out)
	g.out = g.out[:0]
	return err
}

// Close passes on the rest of a line that never ended, and ends it when asked:
// what the host says next begins a line of its own.
func (g *guestLines) Close() error {
	g.decide(true)
	g.release("")
	if g.end && g.open {
		g.out = append(g.out, '\n')
	}
	return g.flush()
}

// GuestLines returns a writer that passes a guest's text on to w, with every
// line that begins like the marker of rlp prefixed "guest: ", and what steers a
// terminal, but for colours, shown as what it is. Close passes on an unfinished
// last line, and ends it if end is set.
func GuestLines(w io.Writer, end bool) io.WriteCloser { return &guestLines{w: w, end: end} }
