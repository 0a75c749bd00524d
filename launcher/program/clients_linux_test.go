package program_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/hostcalls/modelapi"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/model"
	"runloop.dev/rlp/internal/effect/model/modeltest"
	"runloop.dev/rlp/internal/effect/model/providers"
)

// models are those of two providers, which are servers on loopback.
func models(t *testing.T) func(*hostcalls.Config, *gate.Options) {
	t.Helper()
	cfg := model.Config{
		Default: model.Echo, Backend: providers.New(providers.Options{Backoff: time.Millisecond}), Now: time.Now,
		Key: func(context.Context, string) (string, error) { return modeltest.Key, nil },
	}
	for _, kind := range []string{"openai", "anthropic"} {
		cfg.Providers = append(cfg.Providers, model.Provider{
			ID: kind, Kind: kind, BaseURL: modeltest.Start(t, kind).URL, SecretID: "runloop/m/key",
		})
	}
	return func(c *hostcalls.Config, _ *gate.Options) { c.Model = model.New(cfg) }
}

const asksModels = `[capabilities]
model = ["openai:some", "openai:odd", "openai:mixed", "openai:limited", "openai:busy", "openai:later", "openai:broken",
  "openai:locked", "openai:vectors", "anthropic:some", "anthropic:odd", "anthropic:mixed", "anthropic:limited",
  "anthropic:busy", "anthropic:later", "anthropic:broken", "anthropic:locked"]
`

// The official clients of both providers make of what model.rlp answers in a sandbox
// what they make of the same without one, where it is held against what the providers
// said (hostcalls/modelapi): whole and by stream, tools, vectors, errors.
//
//rlp:holds N9
func TestOfficialClientsFromInside(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil || testing.Short() {
		t.Log("not asked: the official clients, which take npm (.ci/setup) and time")
		return
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--prefer-offline",
		"--prefix", dir, "openai@7.57.0", "@anthropic-ai/sdk@1.14.0")
	if out, err := install.CombinedOutput(); err != nil {
		t.Logf("not asked: the official clients, which npm cannot have here: %v: %s", err, out)
		return
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "hostcalls", "modelapi", "testdata", "clients.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "clients.mjs")
	if err := os.WriteFile(script, text, 0o644); err != nil {
		t.Fatal(err)
	}
	made := func(out []byte) (got map[string]any) {
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return got
	}
	plain := open(t, asksModels, models(t))
	front := httptest.NewServer(&modelapi.Handler{Asker: plain.host, Now: time.Now})
	defer front.Close()
	c := exec.CommandContext(t.Context(), "node", script)
	c.Env = append(os.Environ(), "CLIENTS="+dir, "BASE="+front.URL)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	inside := open(t, asksModels, models(t))
	inside.folders = []lane.Folder{{Path: dir, Access: lane.ReadOnly}}
	got := inside.run(t, "CLIENTS="+dir+" BASE=http://model.rlp node "+script)
	a, b := made(out), made([]byte(got))
	for name := range a {
		if !reflect.DeepEqual(a[name], b[name]) {
			t.Errorf("%s: outside\n%v\ninside\n%v", name, a[name], b[name])
		}
	}
	if asked, dialled, _ := inside.outside(); len(asked)+len(dialled) != 0 || len(a) < 5 {
		t.Errorf("looked up %q, connected to %q", asked, dialled)
	}
	if n, m := len(plain.log.Decisions), len(inside.log.Decisions); n != m || n == 0 {
		t.Errorf("%d decisions outside, %d inside", n, m)
	}
}
