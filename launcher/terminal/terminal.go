// Package terminal asks the person at the terminal of this process whether an agent
// may do something.
//
// Its law: nothing of the agent's words steers the terminal or looks like a line of
// the question's own, and whatever is no typed yes is a no.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/internal/effect/tty"
)

// A screen is where a person can be asked.
type screen interface {
	io.ReadWriteCloser
	SetReadDeadline(t time.Time) error
}

// longestQuestion is how long a person has to answer; after that it is a no.
const longestQuestion = 5 * time.Minute

// mostShown bounds what a question shows of arguments, in characters.
const mostShown = 4000

// Ask asks at the terminal of this process whether agent may do what q says. Only a
// yes that is typed after the question is one; the text says who decided, or why
// nobody did. Questions are asked one at a time, and a program that has the terminal
// neither writes nor reads there meanwhile.
func Ask(ctx context.Context, agent string, q hostcalls.Question) (yes bool, how string) {
	err := tty.Alone(ctx, func() {
		at, err := openTerminal()
		if err != nil {
			how = noTerminal(err)
			return
		}
		defer at.Close()
		yes, how = askAt(ctx, at, agent, q)
	})
	switch {
	case errors.Is(err, tty.ErrPiped):
		return false, noTerminal(err)
	case err != nil:
		return false, "nobody was asked in time"
	}
	return yes, how
}

func noTerminal(why error) string {
	return "there is no terminal to ask at (" + why.Error() +
		`); the operator may write confirm = "allow" under [security]`
}

// ownScreen takes the terminal back from what an agent may have printed to it:
// it ends a sequence or a string that was left open, resets modes, margins,
// colours and character sets, leaves the other screen, and begins at the bottom.
const ownScreen = "\x18\x1b\\\x1b[!p\x1b[?1049l\x1b[0m\x0f\x1b(B\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b[999;1H"

// askAt asks at a terminal. Only a yes that is typed after the question is one.
func askAt(ctx context.Context, at screen, agent string, q hostcalls.Question) (bool, string) {
	if _, err := io.WriteString(at, ownScreen+asking(agent, q)); err != nil {
		return false, "the question could not be shown"
	}
	if err := at.SetReadDeadline(time.Now().Add(longestQuestion)); err != nil {
		return false, "the terminal cannot be waited for"
	}
	stop := context.AfterFunc(ctx, func() { _ = at.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := ReadLine(at)
	switch word := strings.ToLower(strings.TrimSpace(line)); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		_, _ = io.WriteString(at, "\r\nrlp: no answer, so it is a no\r\n")
		return false, "nobody answered in time"
	case err == nil && (word == "y" || word == "yes"):
		return true, "by the operator at the terminal"
	}
	return false, "the operator said no"
}

// asking is what is shown. Nothing of the bundle's or the guest's words can
// steer the terminal, or begin a line of its own.
func asking(agent string, q hostcalls.Question) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\r\nrlp: %s wants to use %s\r\n", printable.Line(agent), printable.Line(q.Tool))
	if q.Description != "" {
		fmt.Fprintf(&b, "  it says    %s\r\n", clipped(q.Description))
	}
	fmt.Fprintf(&b, "  reaches    %s\r\n", clipped(q.Target))
	if q.Arguments != "" {
		fmt.Fprintf(&b, "  arguments  %s\r\n", clipped(q.Arguments))
	}
	b.WriteString("Allow it this once? [y/N] ")
	return b.String()
}

// tightly is s with its long blanks named: what is wide enough to fill a line of
// the terminal could draw the next one as if it were not of the same text.
func tightly(s string) string {
	const most = 3
	var b strings.Builder
	var blanks []rune
	end := func() {
		if len(blanks) > most {
			fmt.Fprintf(&b, " (%d blanks) ", len(blanks))
		} else {
			b.WriteString(string(blanks))
		}
		blanks = blanks[:0]
	}
	for _, r := range s {
		if unicode.IsSpace(r) || printable.Hidden(r) {
			blanks = append(blanks, r)
			continue
		}
		end()
		b.WriteRune(r)
	}
	end()
	return b.String()
}

func clipped(s string) string {
	text := []rune(printable.Line(tightly(s)))
	if len(text) <= mostShown {
		return string(text)
	}
	return fmt.Sprintf("%s ... and %d characters more that are not shown", string(text[:mostShown]), len(text)-mostShown)
}

// ReadLine reads to the end of a line, and no further than an answer can be long.
func ReadLine(r io.Reader) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for len(line) < 64 {
		n, err := r.Read(one)
		if n == 1 && (one[0] == '\n' || one[0] == '\r') {
			return string(line), nil
		}
		if err != nil {
			return "", err
		}
		line = append(line, one[:n]...)
	}
	return "", errors.New("too long for an answer")
}
