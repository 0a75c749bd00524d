package run

import (
	"io"
	"sync"
)

// Beside is a stream that lines of rlp's own share with what a program writes, as it
// writes it. Each line that is written to it begins a line; what passes of the program's
// is the same bytes, but for a line that a reader could take for one of rlp's, which is
// prefixed. It is for streams that programs read: what persons see is [GuestLines]'.
type Beside struct {
	w      io.Writer
	events bool // rlp's own are documents of JSON, too

	mu    sync.Mutex
	begun bool    // the program's line has begun with something that is no blank
	open  bool    // it has something
	held  []byte  // what has come of "RLP_" where a line begins
	last  [2]byte // before
}

// NewBeside shares w.
func NewBeside(w io.Writer, events bool) *Beside { return &Beside{w: w, events: events} }

// Write writes lines of rlp's own.
func (b *Beside) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var before []byte
	if len(p) > 0 && (b.open || len(b.held) > 0) {
		before = append(b.held, '\n')
		b.begun, b.open, b.held = false, false, nil
	}
	if _, err := b.w.Write(append(before, p...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Pass passes p on, which the program wrote; all that it wrote where p is empty. No line
// of rlp's own comes between what pass is given at once.
func (b *Beside) Pass(p []byte, pass func([]byte) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]byte, 0, len(p)+len(prefix))
	for _, c := range p {
		out = b.take(out, c)
	}
	if len(p) == 0 {
		out, b.held = append(out, b.held...), nil
	}
	if len(out) == 0 {
		return true
	}
	b.open = out[len(out)-1] != '\n'
	return pass(out)
}

// Theirs is the stream for what is not rlp's own, where it is written piece by piece.
func (b *Beside) Theirs() io.Writer { return theirs{b} }

type theirs struct{ b *Beside }

func (t theirs) Write(p []byte) (n int, err error) {
	if len(p) > 0 {
		t.b.Pass(p, func(out []byte) bool { _, err = t.b.w.Write(out); return err == nil })
	}
	return len(p), err
}

// Close passes on what is left of an unfinished line.
func (b *Beside) Close() (err error) {
	b.Pass(nil, func(out []byte) bool { _, err = b.w.Write(out); return err == nil })
	return err
}

// take appends what is decided with c.
func (b *Beside) take(out []byte, c byte) []byte {
	if !b.begun {
		switch {
		case c == forged[len(b.held)]:
			if b.held = append(b.held, c); len(b.held) == len(forged) {
				out = append(append(out, prefix...), b.held...)
				b.held, b.begun = nil, true
			}
			return out
		case len(b.held) == 0 && (c == ' ' || c == '\t'):
			return append(out, c)
		case len(b.held) == 0 && c == '{' && b.events:
			out = append(out, prefix...)
		}
	}
	out = append(append(out, b.held...), c)
	b.held, b.begun = nil, !b.endsLine(c)
	return out
}

// endsLine reports whether some reader's line ends with c: at what ends one in ASCII or
// Unicode, and at what is not seen.
func (b *Beside) endsLine(c byte) bool {
	one, two := b.last[0], b.last[1]
	b.last = [2]byte{two, c}
	return c < ' ' && c != '\t' || c == 0x7f ||
		two == 0xc2 && c == 0x85 || one == 0xe2 && two == 0x80 && (c == 0xa8 || c == 0xa9) // U+0085, U+2028, U+2029
}
