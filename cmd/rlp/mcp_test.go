package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"runloop.dev/rlp/internal/effect/mcpclient"
	"runloop.dev/rlp/internal/effect/mcpclient/mcptest"
	"runloop.dev/rlp/launcher/compose"
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
	for path, says := range map[string]string{
		compose.PinPath(h.owner, theServer):  canary + " before",
		compose.SeenPath(h.owner, theServer): canary + " after",
	} {
		tools := []mcpclient.Tool{{Name: "echo", Description: says, Schema: []byte("{}")}}
		if err := compose.NewPin(theServer, tools, time.Unix(1, 0)).Write(path, true); err != nil {
			h.t.Fatal(err)
		}
	}
}
