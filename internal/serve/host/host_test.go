package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/serve/host/hosttest"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// A testHost is the host of a service, in a home of its own.
type testHost struct {
	Questions
	who *service.Caller
}

func TestMain(m *testing.M) {
	launcher.Main()
	os.Exit(m.Run())
}

// testingHost is a host whose config.toml says config.
func testingHost(t testing.TB, config string) *testHost {
	t.Helper()
	r := hosttest.Runner(t, config)
	return &testHost{
		Questions{New(r, r.HomeDir, slog.New(slog.NewTextHandler(t.Output(), nil)), time.Now)},
		&service.Caller{
			Name: "user:1", Tenant: "default",
			May: service.Launch | service.Read | service.Operate,
		},
	}
}

// begin is what the service gives to a run.
func begin(t testing.TB) service.Begin {
	t.Helper()
	id, err := ident.NewRun()
	if err != nil {
		t.Fatal(err)
	}
	return service.Begin{RunID: id.String()}
}

// ingest takes in what is in journals, which is done behind the launches otherwise.
func (h *testHost) ingest(t testing.TB) {
	t.Helper()
	err := h.use(t.Context(), home.DefaultTenant, func(log *kb.Store) error {
		_, err := log.Ingest(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// do is a request as the service does it.
func (h *testHost) do(t testing.TB, q *service.Request) (*launcher.Report, error) {
	t.Helper()
	if err := h.Check(t.Context(), h.who, q); err != nil {
		return nil, err
	}
	return h.Launch(t.Context(), h.who, q, begin(t))
}

// Everything that is wrong with a request is said of its field, as the JSON has
// it, and nothing is begun.
//
//rlp:holds A54 D7
func TestRequestsAreRefusedByField(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	hosttest.Install(t, h.home, "plain", "", importing(t))
	good := archived(t, "sent", "", importing(t))
	for name, c := range map[string]struct {
		q    service.Request
		want []string
	}{
		"nothing":     {service.Request{}, []string{"agent"}},
		"two of them": {service.Request{Agent: "plain", Bundle: good}, []string{"bundle"}},
		"a path":      {service.Request{Agent: "../plain"}, []string{"agent"}},
		"a registry":  {service.Request{Reference: "oci://host/repo:tag"}, []string{"bundle"}},
		"no archive":  {service.Request{Bundle: []byte("x")}, []string{"bundle"}},
		"no bundle":   {service.Request{Bundle: []byte{}}, []string{"bundle"}},
		"input":       {service.Request{Agent: "plain", Input: json.RawMessage("{")}, []string{"input"}},
		"input twice": {
			service.Request{Agent: "plain", Input: json.RawMessage("1"), InputBytes: []byte("1")}, []string{"input_base64"},
		},
		"input as bytes": {service.Request{Agent: "plain", InputBytes: []byte("{")}, []string{"input_base64"}},
		"args":           {service.Request{Agent: "plain", Args: []string{"a", "b\x00"}}, []string{"args[1]"}},
		"null in a list": {
			service.Request{Agent: "plain", Grant: json.RawMessage(`{"allowed_adapters":["core",null]}`)},
			[]string{"allowed_adapters[1]"},
		},
		"a limit": {
			service.Request{Agent: "plain", Grant: json.RawMessage(`{"limits":{"max_steps":-1}}`)},
			[]string{"limits.max_steps"},
		},
		"a constraint": {
			service.Request{
				Agent: "plain",
				Grant: json.RawMessage(`{"adapter_constraints":{"http":{"hosts":"a.example"}}}`),
			},
			[]string{"adapter_constraints.http.hosts"},
		},
		"profiles": {
			service.Request{Agent: "plain", Profiles: []string{"local_minimal", "nobody", "../x"}},
			[]string{"profiles[1]", "profiles[2]"},
		},
		"an override": {service.Request{Agent: "plain", Override: "[capabilities]\nfs = 7\n"}, []string{"policy"}},
		"its params":  {service.Request{Agent: "plain", Override: "[params]\nnotes = \"/etc\"\n"}, []string{"policy"}},
		"allow and deny": {service.Request{
			Agent: "plain", Allow: []string{"fs:read:/tmp", "x"},
			Deny: []string{"kb:read:nowhere"},
		}, []string{"allow[1]", "deny[0]"}},
		"params": {
			service.Request{Agent: "plain", Params: map[string]string{"a": "relative", "b": "/tmp"}},
			[]string{"params.a"},
		},
		"a trace": {service.Request{Agent: "plain", TraceID: "ABC"}, []string{"traceparent"}},
		"several": {
			service.Request{Agent: "plain", Profiles: []string{"nobody"}, Deny: []string{"x"}},
			[]string{"deny[0]", "profiles[0]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := c.q
			q.Door = service.HTTP
			_, err := h.do(t, &q)
			var fields service.FieldErrors
			if !errors.As(err, &fields) {
				t.Fatalf("%v", err)
			}
			var got []string
			for _, f := range fields {
				if f.Why == "" {
					t.Errorf("%s: nothing is said", f.Field)
				}
				got = append(got, f.Field)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("fields %q, want %q: %v", got, c.want, err)
			}
		})
	}
	for name, q := range map[string]*service.Request{
		"control: installed": {Door: service.HTTP, Agent: "plain"},
		"control: sent":      {Door: service.HTTP, Bundle: good},
	} {
		if r, err := h.do(t, q); err != nil || r.Outcome != launcher.OK {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
	if _, err := h.do(t, &service.Request{Door: service.HTTP, Agent: "nobody"}); !errors.Is(err, service.ErrNotFound) {
		t.Errorf("an agent that is not installed: %v", err)
	}
}

// A path of the host is the operator's to name, and the error says which field.
//
//rlp:holds A56 A61
func TestParamsAreTheOperators(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	hosttest.Install(t, h.home, "plain", "", importing(t))
	q := &service.Request{Door: service.HTTP, Agent: "plain", Params: map[string]string{"notes": t.TempDir()}}
	h.who.May = service.Launch
	if err := h.Check(t.Context(), h.who, q); !errors.Is(err, service.ErrForbidden) {
		t.Errorf("who only launches: %v", err)
	}
	h.who.May |= service.Operate
	if err := h.Check(t.Context(), h.who, q); err != nil {
		t.Errorf("control: the operator: %v", err)
	}
}

// What a request starts from is the grant of its door, or the one that the
// operator names for both.
//
//rlp:holds A30 A31 A32 A62
func TestDoors(t *testing.T) {
	for _, c := range []struct {
		config string
		door   service.Door
		want   map[string]int64
	}{
		{"", service.HTTP, map[string]int64{"max_depth": 20, "hostcalls_max": 200, "wall_time_ms": 30000}},
		{"", service.MCP, map[string]int64{"max_depth": 10, "hostcalls_max": 50, "wall_time_ms": 5000}},
		{"[security]\nrun_grant = \"sandbox_compute_and_store\"\n", service.MCP, map[string]int64{
			"hostcalls_max": 500,
			"wall_time_ms":  30000,
		}},
		{"[security]\nrun_grant = \"sandbox_compute_and_store\"\n", service.HTTP, map[string]int64{
			"hostcalls_max": 500,
			"wall_time_ms":  30000,
		}},
		{"[limits]\nwall_time_ms = 70\n", service.HTTP, map[string]int64{"hostcalls_max": 200, "wall_time_ms": 70}},
	} {
		h := testingHost(t, c.config)
		hosttest.Install(t, h.home, "plain", "", importing(t))
		r, err := h.do(t, &service.Request{
			Door: c.door, Agent: "plain",
			Grant: json.RawMessage(`{"limits":{"max_steps":3}}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		for key, n := range c.want {
			if r.Limits[key] != n {
				t.Errorf("%q %s: %s is %d, want %d", c.config, c.door, key, r.Limits[key], n)
			}
		}
		if r.Limits["cpu_fuel"] != 3*15625 {
			t.Errorf("cpu_fuel is %d: the request's three steps are not met", r.Limits["cpu_fuel"])
		}
	}
}

// A profile that is not there, or not one, is found before the first request.
//
//rlp:holds A33
func TestNoServiceWithoutItsGrant(t *testing.T) {
	for name, c := range map[string]struct{ config, file string }{
		"unknown": {"[security]\nrun_grant = \"nobody\"\n", ""},
		"corrupt": {"[security]\nrun_grant = \"mine\"\n", "[deny]\ncapabilties = []\n"},
		"empty":   {"[security]\nrun_grant = \"mine\"\n", "\n"},
		"default": {"", "not toml"},
	} {
		t.Run(name, func(t *testing.T) {
			h := testingHost(t, c.config)
			if err := h.Decided(); name != "unknown" && name != "default" && err == nil {
				t.Error("control: without the file it is refused as well")
			}
			file := "mine"
			if name == "default" {
				file = "runner_default"
				if err := h.Decided(); err != nil {
					t.Errorf("control: %v", err)
				}
			}
			path := filepath.Join(h.home, "caps", "profiles", file+".toml")
			if c.file != "" {
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(c.file),
					0o600)); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.Decided(); err == nil {
				t.Error("it would serve")
			}
		})
	}
}

// randomRequestGrant is a grant in JSON of a caller or a request.
func randomRequestGrant(r *rand.Rand) string {
	some := func(words ...string) string {
		r.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		return `["` + strings.Join(words[:1+r.IntN(len(words))], `","`) + `"]`
	}
	fields := []string{
		`"allowed_adapters":` + some("core", "fs", "http", "sqlite", "memory", "agent", "exec", "mcp", "secrets", "env",
			"time", "llm"),
		`"forbidden_adapters":` + some("fs", "http", "net_http", "kb_get", "exec", "env"),
		`"forbidden_effects":` + some("io-write", "control"),
		`"forbidden_privilege_tiers":` + some("network", "operator_sensitive"),
		fmt.Sprintf(`"limits":{"max_adapter_calls":%d,"max_time_ms":%d}`, 1+r.IntN(500), 1000+r.IntN(20000)),
	}
	r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	return "{" + strings.Join(fields[:r.IntN(4)], ",") + "}"
}

// grantLayer is a grant as the layer of a token.
func grantLayer(t testing.TB, name, text string) *caps.Layer {
	t.Helper()
	l, findings := policy.ParseGrant(name, name, []byte(text), policy.Options{})
	if l == nil {
		t.Fatal(findings)
	}
	return l
}

// What the surface shows can be had, each family and each call of it; what it
// does not show is refused before anything is begun.
//
//rlp:holds A46
func TestTheSurfaceIsWhatARequestGets(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	rng, work := rand.New(rand.NewPCG(7, 46)), t.TempDir()
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	shown, hidden := 0, 0
	for range rounds {
		text := randomRequestGrant(rng)
		h.who.Layers = []*caps.Layer{grantLayer(t, "token:t", text)}
		door := []service.Door{service.HTTP, service.MCP}[rng.IntN(2)]
		s, err := h.Surface(t.Context(), h.who, door)
		if err != nil {
			t.Fatal(err)
		}
		asks, calls := "", []string(nil)
		for _, f := range s.Families {
			one, verbs := askingFor(f.Name, work)
			if f.TakenBy == "lane" { // this machine can confine no programs
				continue
			}
			if !f.Available {
				hidden++
				q := &service.Request{Door: door, Bundle: archived(t, "one", one, importing(t, verbs...))}
				var v *service.ViolationError
				if _, err := h.do(t, q); !errors.As(err, &v) || len(v.Violations) == 0 || f.TakenBy == "" {
					t.Fatalf("%s\n%s is not shown (taken by %q), and a request for it: %v", text, f.Name, f.TakenBy, err)
				}
				continue
			}
			shown++
			asks, calls = asks+one, append(calls, f.Verbs...)
		}
		slices.Sort(calls)
		r, err := h.do(t, &service.Request{Door: door, Bundle: archived(t, "all", asks, importing(t, linked(calls)...))})
		if err != nil || r.Outcome != launcher.OK {
			t.Fatalf("%s\na request for all that is shown, %q: %+v %v", text, asks, r, err)
		}
	}
	if shown < rounds || hidden < rounds {
		t.Errorf("%d families were shown and %d were not: too few of either to show anything", shown, hidden)
	}
}

// Each family is shown with what the table of families says of it, and with the
// calls that it has.
//
//rlp:holds A44 A45
func TestTheSurfaceShowsTheTable(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	s, err := h.Surface(t.Context(), h.who, service.HTTP)
	if err != nil || len(s.Families) != int(caps.NumFamilies) || s.Grant != "operator_full" || s.SchemaVersion == "" ||
		s.Limits["wall_time_ms"] != 300000 {
		t.Fatalf("%+v %v", s, err)
	}
	for i, f := range s.Families {
		meta := caps.MetadataOf(caps.Family(i))
		_, calls := askingFor(f.Name, "/srv")
		if f.TakenBy == "lane" {
			continue
		}
		if f.Name != caps.Family(i).String() || !f.Available || f.Category != meta.Category || f.Tier != meta.Tier.String() ||
			f.Destructive != meta.Destructive || f.NetworkFacing != meta.NetworkFacing || f.SandboxSafe != meta.SandboxSafe ||
			!slices.Equal(linked(f.Verbs), calls) || len(f.Effects) == 0 ||
			!slices.Contains(caps.EffectOf(caps.Family(i), 0).Words(), f.EffectDefault) {
			t.Errorf("%+v", f)
		}
	}
}

// askingFor is the policy of a bundle that asks for a family, and the calls that
// it has.
func askingFor(family, work string) (policy string, calls []string) {
	asks := map[string]string{
		"fs": "fs = [\"" + work + "\"]\n", "net": "net = [\"a.example\"]\n", "env": "env = [\"FOO\"]\n",
		"secrets": "secrets = [\"runloop/a/b\"]\n",
		"mcp":     "mcp = [\"github\"]\n", "agents": "agents = [\"critic\"]\n",
	}
	policy = asks[family]
	if policy == "" {
		policy = family + " = true\n"
	}
	for _, tool := range caps.Tools() {
		if tool.Family.String() == family {
			calls = append(calls, tool.Name)
		}
	}
	return policy, linked(calls)
}

// linked are the calls that a module can import by the names of records.
func linked(calls []string) []string {
	return slices.DeleteFunc(slices.Clone(calls), func(name string) bool { return name == "path_readdir" })
}

// The same layers leave the same, whoever brings them: flags, POST /run, a tool
// of MCP.
//
//rlp:holds A60
func TestOneMerge(t *testing.T) {
	const asks = "fs_rw = [\"/srv/a\", \"/srv/b\"]\nkb_read = true\nkb_write = [\"drafts\"]\nnet = [\"a.example\", " +
		"\"b.example\"]\nenv = [\"FOO\"]\ntime = true\n"
	rng := rand.New(rand.NewPCG(7, 60))
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	hosttest.Install(t, h.home, "asks", asks, importing(t))
	dir := filepath.Join(h.home, "agents", "asks")
	grants := []string{
		"fs:read:/srv/a", "fs:write:/srv/b", "kb:read:notes", "network:https:a.example:443", "env:read:FOO",
		"time:read:*",
	}
	distinct := map[string]bool{}
	for range 60 {
		grant, allow, deny := randomRequestGrant(rng), grants[rng.IntN(len(grants))], grants[rng.IntN(len(grants))]
		profiles := [][]string{nil, {"sandbox_compute_and_store"}, {
			"sandbox_network_restricted",
			"sandbox_compute_and_store",
		}}[rng.IntN(3)]
		file := filepath.Join(t.TempDir(), "grant.json")
		if err := os.WriteFile(file, []byte(grant), 0o600); err != nil {
			t.Fatal(err)
		}
		a := h.as("default", unsaid)
		byFlags, err := a.Compose(dir, compose.Flags{Overrides: []string{file}, Profiles: append(slices.Clone(profiles),
			"operator_full"), Allow: []string{allow}, Deny: []string{deny}})
		if err != nil {
			t.Fatal(err)
		}
		want := left(t, byFlags)
		distinct[want] = true
		for _, door := range []service.Door{service.HTTP, service.MCP} {
			q := &service.Request{
				Door: door, Agent: "asks", Grant: json.RawMessage(grant), Profiles: profiles,
				Allow: []string{allow}, Deny: []string{deny},
			}
			c, err := h.compose(t.Context(), a, h.who, q, begin(t))
			if err != nil {
				t.Fatal(err)
			}
			if got := left(t, c); got != want {
				t.Fatalf("%s, %v, allow %s, deny %s, by %s:\n%s\nby flags:\n%s", grant, profiles, allow, deny, door, got, want)
			}
		}
	}
	if len(distinct) < 20 {
		t.Errorf("%d different sets came of it: the generator shows little", len(distinct))
	}
}

// left is what a composition leaves: the set, its limits and its terms.
func left(t testing.TB, c *compose.Composition) string {
	t.Helper()
	p, err := launcher.NewPlan(c.Policy)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x %v %v %s", p.Effective.Digest(), p.Limits.Map(), p.Effective.Constraints().Map(), p.Effective)
}

// Policy refuses a run before anything is done for it: it is recorded, begun and
// rejected, and every reason is told to who asked.
//
//rlp:holds A39 A40 A47 A52 K72
func TestViolations(t *testing.T) {
	h := testingHost(t, "")
	hosttest.Install(t, h.home, "reaches",
		"net = [\"a.example\", \"b.example\"]\nkb_read = [\"notes\"]\nenv = [\"FOO\"]\n",
		importing(t, "net_http", "kb_get"))
	events := []string{}
	b := begin(t)
	b.Event = func(name string, _ map[string]any) { events = append(events, name) }
	q := &service.Request{
		Door: service.HTTP, Agent: "reaches", TraceID: strings.Repeat("ab", 16),
		Grant: json.RawMessage(`{"forbidden_adapters":["sqlit"]}`),
	}
	_, err := h.Launch(t.Context(), h.who, q, b)
	var v *service.ViolationError
	if !errors.As(err, &v) {
		t.Fatalf("%v", err)
	}
	var got []string
	for _, one := range v.Violations {
		got = append(got, one.Capability+" by "+one.Layer)
	}
	want := []string{
		"network:https:a.example by profile:runner_default",
		"network:https:b.example by profile:runner_default", "kb:read:notes by profile:runner_default",
	}
	if !slices.Equal(got, want) || v.RunID != b.RunID || v.TraceID != q.TraceID {
		t.Errorf("%s of %s: %q, want %q", v.RunID, v.TraceID, got, want)
	}
	if len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], `forbidden_adapters[0]: there is no adapter "sqlit"`) ||
		!strings.Contains(v.Warnings[0], `"sqlite"`) {
		t.Errorf("of a mistyped adapter it says %q", v.Warnings)
	}
	if slices.Contains(events, "run.compiled") || slices.Contains(events, "run.running") {
		t.Errorf("something was done: %q", events)
	}
	log, err := h.Log(t.Context(), &service.Caller{Tenant: "default", May: service.Operate})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for r, err := range log.Audit(t.Context(), kb.Filter{Run: b.RunID}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Event != nil { // beside that nothing is left
			kinds = append(kinds, r.Event.Kind)
		}
	}
	if !slices.Equal(kinds, []string{"run.start", "policy.rejected"}) {
		t.Errorf("recorded %q", kinds)
	}
	if r, err := h.do(t, &service.Request{Door: service.HTTP, Bundle: archived(t, "calm", "net = [\"a.example\"]\n",
		importing(t))}); err != nil || r.Outcome != launcher.OK {
		t.Errorf("control: an agent that asks and never calls: %+v %v", r, err)
	}
}

// Several at a time share what the host keeps, and each has its own record.
func TestHostAtOnce(t *testing.T) {
	h := testingHost(t, "")
	hosttest.Install(t, h.home, "plain", "", importing(t))
	var wrong atomic.Int64
	done := make(chan struct{})
	const n = 32
	for range n {
		b := begin(t)
		go func() {
			defer func() { done <- struct{}{} }()
			if r, err := h.Launch(t.Context(), h.who, &service.Request{Door: service.HTTP, Agent: "plain"}, b); err != nil ||
				r.Outcome != launcher.OK || r.RunID != b.RunID {
				wrong.Add(1)
			}
		}()
	}
	for range n {
		<-done
	}
	if wrong.Load() > 0 {
		t.Errorf("%d of %d went wrong", wrong.Load(), n)
	}
	h.ingest(t)
	log, err := h.Log(t.Context(), h.who)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for r, err := range log.Runs(t.Context(), kb.RunQuery{}) {
		if err != nil || r.Outcome != "ok" {
			t.Errorf("%+v %v", r, err)
		}
		count++
	}
	if count != n {
		t.Errorf("the log has %d runs, want %d", count, n)
	}
}

// The agents are those that are installed, each with what it would be left.
func TestAgents(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	hosttest.Install(t, h.home, "pure", "", importing(t))
	hosttest.Install(t, h.home, "sends", "net = { hosts = [\"a.example\"] }\n", importing(t, "net_http"))
	hosttest.Install(t, h.home, "reads", "kb_read = [\"notes\"]\n", importing(t, "kb_get"))
	hosttest.Install(t, h.home, "broken", "nonsense = 1\n", importing(t))
	show := func() string {
		list, err := h.Agents(t.Context(), h.who)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, a := range list {
			fmt.Fprintf(&b, "%s %s %v ro=%v destructive=%v open=%v problem=%v\n", a.Name, a.Version, a.Families, a.ReadOnly,
				a.Destructive, a.OpenWorld, a.Problem != "")
		}
		return b.String()
	}
	want := "broken 1.0.0 [] ro=false destructive=false open=false problem=true\npure 1.0.0 [] ro=true " +
		"destructive=false open=false problem=false\n" +
		"reads 1.0.0 [kb_read] ro=true destructive=false open=false problem=false\nsends 1.0.0 [net] ro=false " +
		"destructive=false open=true problem=false\n"
	if got := show(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if err := os.RemoveAll(filepath.Join(h.home, "agents", "sends")); err != nil {
		t.Fatal(err)
	}
	if got := show(); strings.Contains(got, "sends") {
		t.Errorf("one that is gone is shown:\n%s", got)
	}
}

// Whose grant it was is told by the layer and not by its name: a request that names
// the profile itself, and an operator who binds it to every launch, are no door.
func TestWhoTookItIsTheDoorOrNot(t *testing.T) {
	for name, c := range map[string]struct {
		config   string
		profiles []string
		byDoor   bool
	}{
		"the default grant":                {"", nil, true},
		"the default grant, named as well": {"", []string{"runner_default"}, true},
		"another grant":                    {"[security]\nrun_grant = \"local_minimal\"\n", nil, true},
		"named by the request": {
			"[security]\nrun_grant = \"operator_full\"\n",
			[]string{"runner_default"},
			false,
		},
		"bound by the operator": {"[security]\nrun_grant = \"operator_full\"\nprofile = \"runner_default\"\n", nil, false},
		"bound, and the grant too": {
			"[security]\nrun_grant = \"runner_default\"\nprofile = \"runner_default\"\n", nil,
			false,
		},
	} {
		h := testingHost(t, c.config)
		hosttest.Install(t, h.home, "reaches", "net = [\"a.example\"]\n", importing(t, "net_http"))
		_, err := h.Launch(t.Context(), h.who, &service.Request{Door: service.HTTP, Agent: "reaches", Profiles: c.profiles},
			begin(t))
		var v *service.ViolationError
		if !errors.As(err, &v) || len(v.Violations) == 0 || v.ByDoor != c.byDoor {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

// Of many agents those are opened that are asked for.
func TestSomeAgents(t *testing.T) {
	h := testingHost(t, "")
	for _, name := range []string{"a", "b", "c", "d"} {
		hosttest.Install(t, h.home, name, "", importing(t))
	}
	for _, c := range []struct {
		q    service.AgentQuery
		want string
	}{
		{service.AgentQuery{}, "a b c d"},
		{service.AgentQuery{Name: "c"}, "c"},
		{service.AgentQuery{Name: "../agents/c"}, ""},
		{service.AgentQuery{After: "a", Limit: 2}, "b c"},
		{service.AgentQuery{After: "d", Limit: 2}, ""},
	} {
		list, err := h.SomeAgents(t.Context(), h.who, c.q)
		var names []string
		for _, a := range list {
			names = append(names, a.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c.q, got, err)
		}
	}
}

func importing(t testing.TB, names ...string) []byte { return hosttest.Importing(t, names...) }

func archived(t testing.TB, name, capabilities string, wasm []byte) []byte {
	return hosttest.Archived(t, name, capabilities, wasm)
}
