package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client of rlp mcp is told how its call goes on, and ends it; what it asks
// then is answered as before, and the log has how each run ended.
//
//rlp:holds K57
func TestProgressAndCancelOverStdio(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.tooled(t)
	told := make(chan string, 1000)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"},
		&mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			told <- fmt.Sprint(r.Params.ProgressToken, " ", r.Params.Message)
		}})
	c := exec.Command("rlp", "mcp")
	c.Env, c.Dir = append(slices.Clone(h.env), "RUNLOOP__SECURITY__RUN_GRANT=operator_full"), "/"
	cs, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	asking := func(token string, words ...string) *mcp.CallToolParams {
		p := &mcp.CallToolParams{Name: "probe", Arguments: input(words...)}
		if token != "" {
			p.SetProgressToken(token)
		}
		return p
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // once it was told what the run did last, it is not wanted any more
		for text := range told {
			if strings.HasPrefix(text, "first allowed fs.write "+h.work+"/begun") {
				cancel()
				return
			}
		}
	}()
	if r, err := cs.CallTool(ctx, asking("first", "write", h.work+"/begun", "x", "spin")); err == nil {
		t.Errorf("it was answered: %+v", r)
	}
	soon(t, "it is cancelled", func() bool {
		r := start(t, h.env, "rlp", "audit", "list", "--json")
		return strings.Contains(r.stdout, `"outcome":"cancelled"`)
	})
	if r, err := cs.CallTool(t.Context(), asking("second", "read", "/etc/hostname")); err != nil || !r.IsError {
		t.Errorf("%v %+v", err, r)
	}
	if r, err := cs.CallTool(t.Context(), asking("", "args")); err != nil || r.IsError {
		t.Errorf("control: %v %+v", err, r)
	}
	if err := cs.Close(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	var all []string
	for len(told) > 0 {
		all = append(all, <-told)
	}
	for _, want := range []string{"second run ", "second ended: ok"} {
		if !slices.ContainsFunc(all, func(text string) bool { return strings.HasPrefix(text, want) }) {
			t.Errorf("nobody was told %q: %q", want, all)
		}
	}
	if ends := h.ends(t); !slices.Equal(slices.Sorted(slices.Values(ends)), []string{
		"run.complete ", "run.complete ",
		"run.failed cancelled",
	}) {
		t.Errorf("%q", ends)
	}
}

// The end of its input ends rlp mcp, whatever its client still takes: all runs
// that it began have ended, and are recorded, when it is gone.
func TestEndOfInputEndsAllRuns(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	for name, takes := range map[string]bool{"who takes its answers": true, "who takes nothing": false} {
		t.Run(name, func(t *testing.T) {
			h := m.tooled(t)
			c := exec.Command("rlp", "mcp")
			c.Env, c.Dir = append(slices.Clone(h.env), "RUNLOOP__SECURITY__RUN_GRANT=operator_full"), "/"
			in, err1 := c.StdinPipe()
			out, untaken, err2 := os.Pipe()
			c.Stdout = untaken
			if err := errors.Join(err1, err2, c.Start(), untaken.Close()); err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			answers := make(chan string, 1)
			if takes {
				go func() {
					text, _ := io.ReadAll(out)
					answers <- string(text)
				}()
			}
			lines := []string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			}
			const runs = 3
			for n := range runs {
				lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":"run%d","method":"tools/call","params":{"name":"probe","arguments":{"input":["write","%s/begun%d","x","spin"]},"_meta":{"progressToken":%d}}}`, n, h.work, n, n))
			}
			for n := range 100 { // what comes back is more than a pipe holds
				lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":"list%d","method":"tools/list"}`, n))
			}
			for _, line := range lines {
				if _, err := io.WriteString(in, line+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			for n := range runs {
				soon(t, "it begins", func() bool {
					_,
						err := os.Stat(filepath.Join(h.work, fmt.Sprint("begun", n)))
					return err == nil
				})
			}
			if err := errors.Join(in.Close(), c.Wait()); err != nil {
				t.Errorf("it ended with %v", err)
			}
			if takes {
				for line := range strings.Lines(<-answers) {
					if !json.Valid(bytes.TrimSpace([]byte(line))) {
						t.Errorf("on stdout: %q", line)
					}
				}
			}
			if ends := h.ends(t); len(ends) != runs || slices.ContainsFunc(ends, func(end string) bool {
				return end != "run.failed cancelled"
			}) {
				t.Errorf("%q", ends)
			}
			if r := start(t, h.env, "rlp", "audit", "verify"); r.code != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}
