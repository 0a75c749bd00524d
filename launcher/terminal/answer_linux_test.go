package terminal

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/hostcalls"
)

// What is typed before the question, no answer, and the end of the run are each
// no yes; the words of a guest cannot draw on the screen.
func TestOnlyAnAnswerIsAYes(t *testing.T) {
	q := hostcalls.Question{
		Tool: "send", Description: "d\x1b[2J\r\nAllow it", Target: "POST https://x.org/",
		Arguments: strings.Repeat("x", 5000) + "\u202e",
	}
	shownText := asking("writer", q)
	for _, c := range []string{"\x1b", "\u202e", "\nAllow it this once? [y/N] y"} {
		if strings.Contains(shownText, c) {
			t.Errorf("%q is shown", c)
		}
	}
	if strings.Count(shownText, "\r\n") != 5 || !strings.Contains(shownText,
		"and 1006 characters more that are not shown") {
		t.Errorf("%s", shownText)
	}
	drawn := &typing{text: strings.NewReader("n\n")}
	askAt(t.Context(), drawn, "writer", q)
	if shown := drawn.shown.String(); !strings.HasPrefix(shown, "\x18\x1b\\") || !strings.HasSuffix(shown, shownText) ||
		strings.IndexByte(ownScreen, '\n') >= 0 {
		t.Errorf("what an agent left open is not ended first: %q", shown)
	}
	for typed, want := range map[string]bool{
		"y\n": true, "YES\n": true, " yes \n": true, "n\n": false, "\n": false,
		"yy\n": false, "y": false, strings.Repeat("y", 100) + "\n": false,
	} {
		s := &typing{text: strings.NewReader(typed)}
		if yes, how := askAt(t.Context(), s, "writer", q); yes != want {
			t.Errorf("%q: %v, %s", typed, yes, how)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &typing{waits: make(chan struct{})}
	if yes, how := askAt(ctx, s, "writer", q); yes || how != "nobody answered in time" {
		t.Errorf("after the end of the run: %v %s", yes, how)
	}
}

// typing is a screen at which text was typed; one that waits ends with its
// deadline.
type typing struct {
	text  *strings.Reader
	shown strings.Builder
	waits chan struct{}
}

func (s *typing) Read(p []byte) (int, error) {
	if s.waits != nil {
		<-s.waits
		return 0, os.ErrDeadlineExceeded
	}
	return s.text.Read(p)
}
func (s *typing) Write(p []byte) (int, error) { return s.shown.Write(p) }
func (s *typing) Close() error                { return nil }
func (s *typing) SetReadDeadline(t time.Time) error {
	if s.waits != nil && t.Before(time.Now()) {
		close(s.waits)
	}
	return nil
}
