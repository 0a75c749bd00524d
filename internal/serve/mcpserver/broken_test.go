package mcpserver_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/serve/mcpserver"
)

// toldLog is a log that is read while it is written.
type toldLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *toldLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *toldLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// What breaks under a call is that call's answer: the session goes on, and nobody
// is told what it broke on.
func TestACallThatBreaksEndsAlone(t *testing.T) {
	var logged toldLog
	b := newBench(t, mcpserver.Options{Log: slog.New(slog.NewTextHandler(&logged, nil))})
	cs := b.stdio(t, caller("acme", all), nil)
	_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{
		Name:      "rlp_audit",
		Arguments: map[string]any{"agent": "breaks"},
	})
	if err == nil || !strings.Contains(err.Error(), "the service broke") || strings.Contains(err.Error(), "secret") {
		t.Errorf("the call is answered with %v", err)
	}
	if r := call(t, cs, "rlp_audit", map[string]any{"agent": "other"}); r.IsError {
		t.Errorf("control: %s", textOf(r))
	}
	if text := logged.text(); !strings.Contains(text, "mcp.broke") || !strings.Contains(text, "readAudit") ||
		strings.Contains(text, "secret") {
		t.Errorf("logged is %s", text)
	}
}
