package server

import (
	"fmt"
	"log"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// So many connections that came to nothing are told in a minute, and then how
// many there were besides.
func TestTroublesOfConnectionsFillNoLog(t *testing.T) {
	var said strings.Builder
	now := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	few := &fewLines{log: slog.New(slog.NewTextHandler(&said, nil)), now: func() time.Time { return now }, most: 3}
	l := log.New(few, "", 0)
	minute := func(lines int) string {
		said.Reset()
		for n := range lines {
			l.Printf("http: TLS handshake error from 192.0.2.%d: EOF", n)
		}
		now = now.Add(time.Minute)
		return said.String()
	}
	if text := minute(3); strings.Count(text, "handshake") != 3 || !strings.Contains(text, "192.0.2.2: EOF") {
		t.Errorf("control: %s", text)
	}
	if text := minute(1000); strings.Count(text, "\n") != 3 {
		t.Errorf("of a thousand: %s", text)
	}
	if text := minute(1); strings.Count(text, "handshake") != 1 ||
		!strings.Contains(text, fmt.Sprintf("connections.untold lines=%d", 997)) {
		t.Errorf("a minute later: %s", text)
	}
	now = now.Add(-time.Hour)
	if text := minute(1); strings.Count(text, "handshake") != 1 {
		t.Errorf("a clock that was set back: %s", text)
	}
}
