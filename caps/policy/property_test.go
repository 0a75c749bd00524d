package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// pools are what generated documents name; the requests are made of them too.
var (
	poolPaths   = []string{"/a", "/a/b", "/a/b/c", "/ab", "/tmp", "/tmp/x", "/tmpfoo", "/", "/a/b/"}
	poolHosts   = []string{"x.example", "y.example:8443", "*.example", "X.example", "a.b.example:80", "10.0.0.1:443"}
	poolDomains = []string{"contacts", "notes", "drafts", "contacts_raw", "events"}
	poolSecrets = []string{"runloop/a/b", "runloop/a/c"}
	poolModels  = []string{"openai:*", "openai:gpt", "local:echo"}
	poolExec    = []string{"/bin/a", "/bin/b"}
	poolNames   = []string{"one", "two", "three"}
	poolMethods = []string{"GET", "POST"}
	poolDeny    = []string{
		"exec:*:*", "fs:*:/a/b", "fs:write:/tmp", "fs:read:*", "kb:write:*", "kb:read:contacts_raw", "net:x.example",
		"net:y.example:8443",
		"secrets:read:runloop/a/b", "model:use:openai:gpt", "env:read:one", "mcp:call:*", "agents:launch:two",
	}
)

func asks() []ask {
	var out []ask
	for _, p := range []string{
		"/", "/a", "/a/b", "/a/b/c", "/a/b/c/d", "/ab", "/abc", "/tmp", "/tmp/x/y", "/tmpfoo",
		"/etc/passwd",
	} {
		for _, v := range []string{"read", "write", "delete"} {
			out = append(out, ask{family: caps.FS, verb: v, name: p})
		}
	}
	for _, h := range []string{
		"x.example:443", "x.example:80", "y.example:8443", "y.example:443", "a.b.example:80",
		"z.example:443", "10.0.0.1:443", "evil.test:443",
	} {
		for _, scheme := range []string{"https", "http"} {
			for _, m := range []string{"GET", "POST", "DELETE"} {
				out = append(out, ask{family: caps.Net, name: h, scheme: scheme, method: m})
			}
		}
		out = append(out, ask{family: caps.Net, name: h, scheme: "tcp"})
	}
	out = append(out, ask{family: caps.Time, name: "*"})
	for _, d := range append(slices.Clone(poolDomains), "runs", "edges") {
		out = append(out, ask{family: caps.KBRead, name: d})
		if !strings.HasSuffix(d, "_raw") {
			out = append(out, ask{family: caps.KBWrite, name: d})
		}
	}
	for _, s := range append(slices.Clone(poolSecrets), "runloop/z/z") {
		out = append(out, ask{family: caps.Secrets, verb: "get", name: s}, ask{family: caps.Secrets, verb: "use", name: s +
			"@x.example:443"},
			ask{family: caps.Secrets, verb: "use", name: s + "@y.example:8443"})
	}
	for _, m := range []string{"openai:gpt", "openai:o1", "local:echo", "local:x"} {
		out = append(out, ask{family: caps.Model, name: m})
	}
	for _, p := range append(slices.Clone(poolExec), "/bin/c") {
		out = append(out, ask{family: caps.Exec, name: p})
	}
	for _, n := range append(slices.Clone(poolNames), "four") {
		out = append(out, ask{family: caps.Env, name: n}, ask{family: caps.MCP, name: n}, ask{family: caps.Agents, name: n})
	}
	return out
}

// A gen writes random documents of valid lines.
type gen struct{ *rand.Rand }

func newGen(seed uint64) gen { return gen{rand.New(rand.NewPCG(seed, 1))} }

func (g gen) list(pool []string) string {
	var items []string
	for range g.IntN(4) {
		items = append(items, fmt.Sprintf("%q", pool[g.IntN(len(pool))]))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func (g gen) pick(options ...string) string { return options[g.IntN(len(options))] }

// line is a valid value of a key.
func (g gen) value(key string) string {
	switch key {
	case "fs", "fs_ro", "fs_rw":
		return g.pick(g.list(poolPaths), g.list(poolPaths), "false")
	case "net":
		parts := []string{"hosts = " + g.list(poolHosts)}
		if g.IntN(2) == 0 {
			parts = append(parts, g.pick("allow_http = true", "allow_http = false"))
		}
		if g.IntN(2) == 0 {
			parts = append(parts, "methods = "+g.list(poolMethods))
		}
		if g.IntN(3) == 0 {
			parts = append(parts, "tcp = "+g.list([]string{"x.example:443", "y.example:8443", "10.0.0.1:443"}))
		}
		return g.pick(g.list(poolHosts), "{ "+strings.Join(parts[g.IntN(2)*g.IntN(len(parts)):], ", ")+" }", "false")
	case "time":
		return g.pick("true", "false")
	case "kb_read":
		return g.pick("true", "false", g.list(poolDomains))
	case "kb_write":
		return g.pick("true", "false", g.list(poolDomains[:3]))
	case "secrets":
		return g.pick(g.list(poolSecrets), `[{ id = "runloop/a/b", hosts = `+g.list([]string{"x.example", "y.example:8443"})+
			" }]", "false")
	case "model":
		return g.pick("true", "false", g.list(poolModels))
	case "exec":
		return g.pick("true", "false", g.list(poolExec))
	}
	return g.pick(g.list(poolNames), g.list(poolNames), "false")
}

var allKeys = []string{
	"fs", "fs_ro", "fs_rw", "net", "time", "kb_read", "kb_write", "secrets", "model", "exec", "env",
	"mcp", "agents",
}

// A text is a document as lines, so that it can be mutated.
type text struct {
	caps, limits []string
	deny         string
}

func (g gen) text(density int, layer bool) text {
	var x text
	for _, k := range allKeys {
		if g.IntN(100) < density {
			x.caps = append(x.caps, k+" = "+g.value(k))
		}
	}
	for _, l := range []string{"cpu_fuel", "hostcalls_max", "model_usd"} {
		if g.IntN(3) == 0 {
			x.limits = append(x.limits, fmt.Sprintf("%s = %d", l, g.IntN(3)*g.IntN(1000)))
		}
	}
	if layer && g.IntN(2) == 0 {
		x.deny = "[deny]\ncapabilities = " + g.list(poolDeny) + "\n"
	}
	return x
}

func (x text) String() string {
	return "schema = \"0.2\"\n[capabilities]\n" + strings.Join(x.caps, "\n") + "\n" + x.deny + "[limits]\n" +
		strings.Join(x.limits, "\n") + "\n"
}

// decide is what the program decides: nil when it refuses the documents.
func decide(t testing.TB, baseText string, layers ...string) (caps.Set, caps.Set, bool) {
	t.Helper()
	b, findings := policy.ParseBase("policy.caps", []byte(baseText), options)
	if b == nil {
		t.Fatalf("base refused: %v\n%s", findings, baseText)
	}
	set, err := caps.Base(b.Entries, b.Limits)
	if err != nil {
		t.Fatal(err)
	}
	out := set
	for _, l := range layers {
		o, _ := policy.ParseLayer("l", "l", []byte(l), options)
		if o == nil {
			return set, out, false
		}
		if out, _, err = out.Narrow(o.Layer); err != nil {
			t.Fatal(err)
		}
	}
	return set, out, true
}

func plainDoc(t testing.TB, s string) doc {
	root, err := tomlfile.Parse("f", []byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return root.Plain()
}

// Reader and algebra decide what the oracle decides, for every request, over
// random bases and layers.
//
//rlp:holds R6 R42 R43 R44 R45 R53
func TestAgreesWithOracle(t *testing.T) {
	all, allowed, checked := asks(), 0, 0
	for seed := range uint64(1500) {
		g := newGen(seed)
		base := g.text(80, false).String()
		var layers []string
		for range g.IntN(3) {
			layers = append(layers, g.text(25, true).String())
		}
		_, set, ok := decide(t, base, layers...)
		if !ok {
			t.Fatalf("seed %d: a valid layer is refused: %q", seed, layers)
		}
		b := plainDoc(t, base)
		var ls []doc
		for _, l := range layers {
			ls = append(ls, plainDoc(t, l))
		}
		for _, a := range all {
			want := oracleBase(b, a) && !slices.ContainsFunc(ls, func(l doc) bool { return !oracleLayer(l, a) })
			got := set.Check(a.request()).Allow
			checked++
			if got {
				allowed++
			}
			if got != want {
				t.Fatalf("seed %d: %+v: got %v, want %v\nbase:\n%s\nlayers:\n%s", seed, a, got, want, base,
					strings.Join(layers, "\n---\n"))
			}
		}
	}
	if allowed*20 < checked || allowed*2 > checked {
		t.Errorf("%d of %d allowed: the generator shows little", allowed, checked)
	}
}

// P11: the order of keys and entries, and repetition, change no digest.
//
//rlp:holds R40 C22
func TestOrderMeansNothing(t *testing.T) {
	for seed := range uint64(300) {
		g := newGen(seed)
		x := g.text(80, false)
		a := base(t, x.String())
		g.Shuffle(len(x.caps), func(i, j int) { x.caps[i], x.caps[j] = x.caps[j], x.caps[i] })
		for i, l := range x.caps {
			key, value, _ := strings.Cut(l, " = ")
			if strings.HasPrefix(value, `["`) {
				items := strings.Split(strings.Trim(value, "[]"), ", ")
				g.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
				x.caps[i] = key + " = [" + strings.Join(append(items, items[g.IntN(len(items))]), ", ") + "]"
			}
		}
		if b := base(t, x.String()); a.Digest() != b.Digest() || a.String() != b.String() {
			t.Fatalf("seed %d: %s and %s", seed, a, b)
		}
	}
}

// mutate changes one thing of a layer, the way a slip or an attacker would.
func (g gen) mutate(x text) text {
	x.caps, x.limits = slices.Clone(x.caps), slices.Clone(x.limits)
	at := 0
	if len(x.caps) > 0 {
		at = g.IntN(len(x.caps))
	}
	k := g.pick(allKeys...)
	switch g.IntN(12) {
	case 0:
		x.caps = append(x.caps, k+" = "+g.value(k))
	case 1:
		x.caps = append(x.caps, strings.ToUpper(k)+" = "+g.value(k))
	case 2:
		x.caps = append(x.caps, g.pick("kbread", "filesystem", "*", "caps", "")+" = "+g.value(k))
	case 3:
		x.caps = append(x.caps, k+" = "+g.pick("true", `"*"`, "1", "1.5", "{}", `["*"]`, `["/"]`, "[true]", "[[]]",
			"2026-01-01", `"\u0000"`))
	case 4:
		if len(x.caps) > 0 {
			x.caps[at] = strings.Replace(x.caps[at], "[", g.pick(`["/", `, `["*", `, `["*:*", `, "[[", "[1, "), 1)
		}
	case 5:
		if len(x.caps) > 0 {
			x.caps[at] = g.pick("#", "x.", "[deny]\n", "capabilities.", "\"\" = 1\n") + x.caps[at]
		}
	case 6:
		if len(x.caps) > 0 {
			x.caps = append(x.caps, x.caps[at])
		}
	case 7:
		x.limits = append(x.limits, g.pick("max_steps", "cpu_fuel", "hostcalls_max", "max_adapter_calls", "model_usd")+" = "+
			g.pick("-1", "0", "1.5", "9223372036854775807", "\"x\"", "true", "-0.0", "nan", "inf", "1000000"))
	case 8:
		x.deny = g.pick("[deny]\ncapabilities = true\n", "[deny]\ncapabilities = [\"\"]\n",
			"[allow]\ncapabilities = [\"fs:read:*\"]\n",
			"[tools]\nallow = []\n", "[requires]\nfs = [\"/\"]\n", "[params]\nx = \"/\"\n", "[[limits]]\n", "templates = []\n")
	case 9:
		x.caps = append(x.caps, k+"."+g.pick("hosts", "allow_http", "x")+" = "+g.pick("true", "[]", `["*.example"]`))
	case 10:
		x.caps = append(x.caps, fmt.Sprintf("%q = %s", strings.ToUpper(k[:1])+k[1:], g.value(k)))
	case 11:
		x.caps = append([]string{"schema = \"0.2\""}, x.caps...)
	}
	return x
}

// P12: whatever is done to an override, it allows nothing that the base
// refuses, and raises no limit: it is below the base or it is refused. What is
// accepted is moreover what the oracle reads, so that no slip drops a
// restriction unseen.
//
//rlp:holds R6 R36 R37 R38 R39
func TestMutatedOverrides(t *testing.T) {
	all, refused, accepted := asks(), 0, 0
	for seed := range uint64(3000) {
		g := newGen(seed)
		baseText := g.text(80, false).String()
		x := g.text(40, true)
		for range 1 + g.IntN(5)/4 {
			x = g.mutate(x)
		}
		layerText := x.String()
		b, set, ok := decide(t, baseText, layerText)
		if !ok {
			refused++
			continue
		}
		accepted++
		l := plainDoc(t, layerText)
		for _, a := range all {
			before, after := b.Check(a.request()).Allow, set.Check(a.request()).Allow
			if after && !before {
				t.Fatalf("seed %d: %+v is widened by\n%s", seed, a, layerText)
			}
			if want := before && oracleLayer(l, a); after != want {
				t.Fatalf("seed %d: %+v: got %v, want %v, layer\n%s", seed, a, after, want, layerText)
			}
		}
		limitsAreLower(t, b.Limits(), set.Limits(), layerText)
	}
	if refused < 300 || accepted < 300 {
		t.Errorf("%d refused, %d accepted: the mutations show little", refused, accepted)
	}
}

func limitsAreLower(t testing.TB, base, effective caps.Limits, layerText string) {
	t.Helper()
	for l := range caps.NumLimits {
		want, had := base.Get(l)
		got, has := effective.Get(l)
		if had && (!has || got > want) || has && got < 0 {
			t.Fatalf("limit %s: base %d, effective %d, layer\n%s", l, want, got, layerText)
		}
	}
}

// P13: taking a key out of an override only ever gives back, up to the base.
// The one exception is fs beside fs_rw, where a key more is a bound less: there
// the two are one statement, and are taken out together.
//
//rlp:holds R44
func TestDroppedKeyGivesBack(t *testing.T) {
	all := asks()
	for seed := range uint64(800) {
		g := newGen(seed)
		baseText := g.text(80, false).String()
		x := g.text(50, true)
		_, with, ok := decide(t, baseText, x.String())
		if !ok || len(x.caps) == 0 {
			continue
		}
		key, _, _ := strings.Cut(x.caps[g.IntN(len(x.caps))], " ")
		less := x
		less.caps = slices.DeleteFunc(slices.Clone(x.caps), func(l string) bool {
			k, _, _ := strings.Cut(l, " ")
			return k == key || strings.HasPrefix(key, "fs") && strings.HasPrefix(k, "fs")
		})
		b, without, ok := decide(t, baseText, less.String())
		if !ok {
			t.Fatalf("seed %d: a layer is refused for a key less", seed)
		}
		for _, a := range all {
			r := a.request()
			if with.Check(r).Allow && !without.Check(r).Allow || without.Check(r).Allow && !b.Check(r).Allow {
				t.Fatalf("seed %d: without %s, %+v changes the wrong way\n%s", seed, key, a, x)
			}
		}
	}
}
