package launcher

import "io"

// guestLines passes a guest's stderr on as it comes, with lines that look like
// rlp's own prefixed, so that a line of its can be taken for the marker neither
// by a program nor by a reader: what a terminal does not show, what shells drop
// and where some languages break lines begins a line too.
type guestLines struct {
	w io.Writer

	out  []byte // what is decided and not yet passed on
	held int    // how much of "RLP_" has come where a line begins
	open bool   // the current line has something
	text bool   // something to be seen came since the line began
	esc  escape
	end  bool // Close ends an unfinished line
}

const forged = "RLP_"

// escape is where in a sequence that steers a terminal a text is.
type escape uint8

const (
	outside escape = iota
	begun          // after ESC
	control        // after ESC [, up to its last byte
)

func (g *guestLines) Write(p []byte) (int, error) {
	for _, b := range p {
		g.put(b)
	}
	if err := g.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (g *guestLines) put(b byte) {
	g.open = b != '\n'
	if !g.text && g.esc == outside && b == forged[g.held] {
		if g.held++; g.held == len(forged) {
			g.out = append(append(g.out, "guest: "...), forged...)
			g.held, g.text = 0, true
		}
		return
	}
	if g.held > 0 {
		g.release()
		g.text = true
	}
	g.out = append(g.out, b)
	g.see(b)
}

// see follows what b makes of the line.
func (g *guestLines) see(b byte) {
	const escapeByte, deleteByte = 0x1b, 0x7f
	switch {
	case b == escapeByte:
		g.esc, g.text = begun, false
	case g.esc == begun && b == '[':
		g.esc = control
	case g.esc == begun, g.esc == control && (b < ' ' || b >= '@'):
		g.esc, g.text = outside, false
	case g.esc == control: // a parameter
	case b < ' ', b >= deleteByte:
		g.text = false
	case b != ' ':
		g.text = true
	}
}

// release gives up what was held: it was no marker.
func (g *guestLines) release() {
	g.out = append(g.out, forged[:g.held]...)
	g.held = 0
}

// flush passes on what is decided.
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
	g.release()
	if g.end && g.open {
		g.out = append(g.out, '\n')
	}
	g.open, g.text = false, false
	return g.flush()
}

// GuestLines returns a writer that passes a guest's text on to w, with every
// line that begins like the marker of rlp prefixed "guest: ". Close passes on
// an unfinished last line, and ends it if end is set.
func GuestLines(w io.Writer, end bool) io.WriteCloser { return &guestLines{w: w, end: end} }
