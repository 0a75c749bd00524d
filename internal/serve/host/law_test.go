package host

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/serve/host/hosttest"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/run"
)

// planOf is what a request of the caller would be left.
func (h *testHost) planOf(t testing.TB, q *service.Request) launcher.Plan {
	t.Helper()
	c, err := h.compose(t.Context(), h.as("default", unsaid), h.who, q, begin(t))
	if err != nil {
		t.Fatal(err)
	}
	p, err := launcher.NewPlan(c.Policy)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Whatever a request says, it is left no more than its caller may have: no
// folder, host, limit or term beyond, by any field.
//
//rlp:holds A38 A56 A61
func TestARequestOnlyTakesAway(t *testing.T) {
	const asks = "fs_rw = [\"/srv\"]\nkb_read = true\nkb_write = [\"drafts\"]\nnet = [\"a.example\", " +
		"\"b.example\"]\nenv = [\"FOO\"]\ntime = true\n"
	rng := rand.New(rand.NewPCG(7, 56))
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	hosttest.Install(t, h.home, "asks", asks, importing(t))
	widening := []string{
		`{"adapter_constraints":{"fs":{"paths":["/"]},"http":{"allow_hosts":["a.example","b.example","evil.example"],"timeout_ms":999999}}}`,
		`{"allowed_adapters":null,"forbidden_adapters":[],"forbidden_privilege_tiers":null,"limits":{"max_time_ms":99999999}}`,
		`{"allowed_adapters":["fs","http","exec","mcp","agents","secrets"],"limits":{"memory_bytes":68719476736}}`,
		`{}`,
	}
	h.who.May = service.Launch
	narrower := 0
	for range 60 {
		h.who.Layers = []*caps.Layer{
			grantLayer(t, "token:t", randomRequestGrant(rng)),
			grantLayer(t, "token:t", `{"adapter_constraints":{"fs":{"paths":["/srv/a"]},"http":{"allow_hosts":["a.example"],"timeout_ms":50}}}`),
		}
		whole := h.planOf(t, &service.Request{Door: service.HTTP, Agent: "asks"})
		text := append([]string{randomRequestGrant(rng)}, widening...)[rng.IntN(5)]
		q := &service.Request{
			Door: service.HTTP, Agent: "asks", Grant: json.RawMessage(text),
			Profiles: []string{"operator_full"}, Allow: []string{"fs:read:/", "fs:write:/"},
			Override: "[capabilities]\nfs_rw = [\"/\"]\nenv = [\"PATH\", \"FOO\"]\n",
		}
		got := h.planOf(t, q)
		for _, g := range got.Effective.Grants() {
			if !whole.Effective.Covers(g) {
				t.Fatalf("%s: %s is left, and without the request only %s", text, g, whole.Effective)
			}
		}
		for key, n := range got.Limits.Map() {
			if most, set := whole.Limits.Map()[key]; set && n > most {
				t.Fatalf("%s: %s is %d, and without the request %d", text, key, n, most)
			}
		}
		if got.Effective.Constraints() != got.Effective.Constraints().Meet(whole.Effective.Constraints()) {
			t.Fatalf("%s: terms %v, and without the request %v", text, got.Effective.Constraints().Map(),
				whole.Effective.Constraints().Map())
		}
		if got.Effective.Digest() != whole.Effective.Digest() {
			narrower++
		}
	}
	raise := &service.Request{
		Door: service.HTTP, Agent: "asks",
		Grant: json.RawMessage(`{"limits":{"memory_bytes":1073741824,"max_depth":50}}`),
	}
	if got := h.planOf(t, raise).Limits.Map(); got["memory_bytes"] != run.DefaultMemoryBytes {
		t.Errorf("a default was lifted: %v", got)
	}
	h.who.May |= service.Operate
	if got := h.planOf(t, raise).Limits.Map(); got["memory_bytes"] != 1<<30 {
		t.Errorf("control: the operator, as by --limit: %v", got)
	}
	if narrower < 10 {
		t.Errorf("%d requests took anything away: the generator shows little", narrower)
	}
}

// Each request is under what the settings, overrides and profiles say when it
// comes.
func TestFilesAreReadForEachRequest(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	hosttest.Install(t, h.home, "asks", "kb_read = true\n", importing(t, "kb_get"))
	q := &service.Request{Door: service.HTTP, Agent: "asks"}
	if r, err := h.do(t, q); err != nil || r.Outcome != launcher.OK {
		t.Fatalf("%+v %v", r, err)
	}
	path := filepath.Join(h.home, "caps", "overrides", "asks.toml")
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("[capabilities]\nkb_read = []\n")
	var v *service.ViolationError
	if _, err := h.do(t, q); !errors.As(err, &v) || v.Violations[0].Layer != "override:asks.toml" {
		t.Errorf("%v", err)
	}
	write("[capabilities\n")
	var u *service.UnavailableError
	if _, err := h.do(t, q); !errors.As(err, &u) || !strings.Contains(err.Error(), "asks.toml") {
		t.Errorf("to who operates: %v", err)
	}
	h.who.May = service.Launch
	if _, err := h.do(t, q); !errors.As(err, &u) || strings.Contains(err.Error(), h.home) {
		t.Errorf("to who does not: %v", err)
	}
}

// An archive is judged as one on disk is, and no larger one is unpacked.
func TestArchivesOfRequests(t *testing.T) {
	h := testingHost(t, "")
	type archive struct {
		data []byte
		says string
	}
	list := map[string]archive{
		"cut":          {archived(t, "a", "", importing(t))[:700], "cut short"},
		"a bad policy": {archived(t, "a", "nonsense = 1\n", importing(t)), "nonsense"},
		"a bad name":   {archived(t, "../a", "", importing(t)), "manifest.toml"},
	}
	if !testing.Short() { // the race detector takes long to pack what is large
		list["a large module"] = archive{archived(t, "a", "", append(importing(t), make([]byte, mostUnpacked)...)), "128 MiB"}
	}
	for name, c := range list {
		_, err := h.do(t, &service.Request{Door: service.HTTP, Bundle: c.data})
		var fields service.FieldErrors
		if !errors.As(err, &fields) || fields[0].Field != "bundle" || !strings.Contains(fields[0].Why, c.says) {
			t.Errorf("%s: %v", name, err)
		} else if strings.HasPrefix(fields[0].Why, "bundle:") {
			t.Errorf("%s says twice which field it is: %v", name, err)
		}
	}
	if r, err := h.do(t, &service.Request{Door: service.HTTP, Bundle: archived(t, "a", "", importing(t))}); err != nil ||
		r.Outcome != launcher.OK {
		t.Errorf("control: %+v %v", r, err)
	}
}
