package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// emptyHouse is a home with nothing in it.
func emptyHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, dir: filepath.Join(t.TempDir(), "home"), out: t.TempDir()}
	var err error
	if h.owner, err = home.Open(h.dir, home.DefaultTenant); err != nil {
		t.Fatal(err)
	}
	return h
}

// At a terminal a change is accepted by a yes to what is shown, and by nothing
// else.
func TestAcceptingAsks(t *testing.T) {
	h := emptyHouse(t)
	for answer, want := range map[string]string{
		"y\n": "accepted: ", "YES\n": "accepted: ", "\n": "", "n\n": "",
		"yes please\n": "", "\x04": "",
	} {
		if err := os.RemoveAll(h.owner.Pins()); err != nil {
			t.Fatal(err)
		}
		h.pins()
		keyboard, tty := ownTerminal(t)
		if _, err := keyboard.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		env := environment{
			args: []string{"--home", h.dir, "mcp", "accept", theServer}, env: []string{"HOME=" + h.out},
			stdin: tty, stdout: &out, stderr: &said,
		}
		status := invoke(t.Context(), env)
		if accepted := strings.Contains(out.String(), "accepted: "); status != 0 || accepted != (want != "") ||
			!strings.Contains(out.String(), canary+" after") {
			t.Errorf("%q: %d\n%s%s", answer, status, &out, &said)
		}
		known, err := compose.ReadPin(compose.PinPath(h.owner, theServer), theServer)
		if err != nil || (known.Tools[0].Description == canary+" after") != (want != "") {
			t.Errorf("%q: known by %+v, %v", answer, known, err)
		}
	}
}

// Who is asked may leave.
func TestAcceptingIsInterrupted(t *testing.T) {
	h := emptyHouse(t)
	h.pins()
	_, tty := ownTerminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	env := environment{
		args: []string{"--home", h.dir, "mcp", "accept", theServer}, env: []string{"HOME=" + h.out},
		stdin: tty, stdout: &out, stderr: &out,
	}
	if status := invoke(ctx, env); status != launcher.StatusCancelled || strings.Contains(out.String(), "accepted: ") {
		t.Errorf("%d %s", status, &out)
	}
}
