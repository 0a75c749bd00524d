package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"runloop.dev/rlp/internal/egress"
	"runloop.dev/rlp/internal/mcpclient"
	"runloop.dev/rlp/internal/mcpclient/mcptest"
)

// mcpServerCommand puts servers of tools into the script's config.toml: the
// program that is one for $MCPTOOL, and, with a KIND, the URL of one for $MCPURL:
// mcpserver [KIND].
func mcpServerCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: mcpserver [KIND]")
	}
	path, err := exec.LookPath("mcptool")
	ts.Check(err)
	url := ""
	if len(args) == 1 {
		srv := httptest.NewServer(mcptest.Handler(args[0]))
		ts.Defer(srv.Close)
		url = srv.URL
	}
	config := filepath.Join(ts.Getenv("HOME"), ".runloop", "config.toml")
	text, err := os.ReadFile(config)
	ts.Check(err)
	text = []byte(strings.NewReplacer("$MCPTOOL", path, "$MCPURL", url, "$WORK", ts.Getenv("WORK")).Replace(string(text)))
	ts.Check(os.Chmod(filepath.Dir(config), 0o700))
	ts.Check(os.WriteFile(config, text, 0o600))
	ts.Check(os.Chmod(config, 0o600))
}

const theServer = "canary-hub"

// pins are of a server of tools that the owner knows, and that has changed.
func (h *house) pins() {
	for path, says := range map[string]string{pinPath(h.owner, theServer): canary + " before", seenPath(h.owner, theServer): canary + " after"} {
		tools := []mcpclient.Tool{{Name: "echo", Description: says, Schema: []byte("{}")}}
		if err := newPin(theServer, tools, time.Unix(1, 0)).write(path, true); err != nil {
			h.t.Fatal(err)
		}
	}
}

// A name that leads to this machine, or into its network, is not reached for a
// server of tools either; an address that the operator wrote is.
//
//rlp:holds K53
func TestAServersNameLeadsNowherePrivate(t *testing.T) {
	srv := httptest.NewServer(mcptest.Handler("good"))
	defer srv.Close()
	port := srv.URL[strings.LastIndexByte(srv.URL, ':'):]
	client := egress.New(egress.Config{Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	defer client.Close()
	var refused *egress.AddressError
	if _, err := mcpclient.Connect(t.Context(), mcpclient.HTTP("http://mcp.example.com"+port, "", client)); !errors.As(err, &refused) {
		t.Errorf("a name that leads to loopback: %v", err)
	}
	s, err := mcpclient.Connect(t.Context(), mcpclient.HTTP(srv.URL, "", client)) // control
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
