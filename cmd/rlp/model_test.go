package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"runloop.dev/rlp/internal/effect/model/modeltest"
)

// modelServer starts a server that speaks a provider's protocol: modelserver
// KIND. Its address is in the environment as OPENAI or ANTHROPIC, its key as
// KEY; "$OPENAI" and the like in config.toml are put in, and the file is made
// the operator's own. The script fails if a request broke the protocol.
func modelServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: modelserver KIND")
	}
	s, stop := modeltest.New(args[0])
	ts.Defer(func() {
		stop()
		if faults := s.Faults(); len(faults) > 0 {
			ts.Fatalf("%s: %s", args[0], strings.Join(faults, "; "))
		}
	})
	ts.Setenv(strings.ToUpper(args[0]), s.URL)
	ts.Setenv("KEY", modeltest.Key)
	path := filepath.Join(ts.Getenv("HOME"), ".runloop", "config.toml")
	text, err := os.ReadFile(path)
	ts.Check(err)
	text = []byte(strings.ReplaceAll(string(text), "$"+strings.ToUpper(args[0]), s.URL))
	ts.Check(os.Chmod(filepath.Dir(path), 0o700))
	ts.Check(os.WriteFile(path, text, 0o600))
	ts.Check(os.Chmod(path, 0o600))
}
