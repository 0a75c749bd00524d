package policy_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// layerFiles are files of every kind that narrows, with everything that each of
// them may say.
func layerFiles() []string {
	list := []string{
		broad,
		"name = \"f\"\ndescription = \"x\"\n[deny]\ntiers = [\"network\", \"local_state\"]\neffects = [\"io-write\", " +
			"\"control\"]\ntools = [\"net_http\", \"mcp:*\", \"tools:x\"]\ncapabilities = [\"kb:write:*\", \"fs:*:/data/sub\"]\n",
		"[tools]\nallow = [\"web:*\", \"kb_get\", \"mcp__x__y\"]\n[visible]\ncategories = [\"file\", \"web\", " +
			"\"memory\"]\n[limits]\nmax_steps = 5\nhostcalls_max = 0\n",
		"schema = \"0.2\"\n[constraints.net]\nhosts = [\"a.example\"]\nmethods = [\"GET\"]\nmin_tls = " +
			"\"1.3\"\nallow_redirects = false\ntimeout_ms = 5\n[constraints.fs]\npaths = [\"/data/sub\"]\n" +
			"[constraints.kb]\ntables = [\"notes\"]\n[leases]\n\"fs:write:/data\" = { expires = 2030-01-01T00:00:00Z, " +
			"max_uses = 3 }\n[capabilities]\nexec = [\"/bin/a\"]\nmcp = [\"x\"]\n",
		`{"allowed_adapters": ["fs", "http", "sqlite"], "forbidden_adapters": ["exec"], "forbidden_effects": ["io-write"],` +
			"\n" +
			` "forbidden_effect_tiers": ["control"], "forbidden_privilege_tiers": ["operator_sensitive"],` + "\n" +
			` "limits": {"max_steps": 7, "max_depth": 0}, "adapter_constraints": {"http": {"allow_hosts": ["a.example"], "timeout_ms": 9}}}`,
		"allowed_adapters = [\"http\"]\nforbidden_adapters = [\"net_http\"]\n[adapter_constraints.http]\nhosts = " +
			"[\"b.example:8443\"]\n",
	}
	for _, name := range policy.BuiltinProfiles() {
		text, _ := policy.ProfileText(name)
		list = append(list, strings.Replace(text, "name = ", "# name = ", 1)) // it is the file's here
	}
	return list
}

// splices are what a slip, or an attacker, puts somewhere.
var splices = []string{
	"*", "/", `"*"`, `"/"`, "true", "false", "[]", "{}", "null", "-1", "0", "9223372036854775807", "1.5", "nan", `""`, "[",
	"]", "{", "}", "=", ",", "\n", "#", "[capabilities]\n", "[deny]\n",
	"[tools]\n", "[visible]\n", "[constraints.net]\n", "[leases]\n", "allow = []\n", "allow = [\"*\"]\n",
	"categories = []\n", "fs = [\"/\"]\n", "net = {}\n", "hosts = [\"*.example\"]\n",
	"tiers = []\n", "effects = []\n", `"allowed_adapters": null,`, `"limits": {},`, `"operator_defined"`,
	"schema = \"0.2\"\n", "Deny", "denny", "\u0000", "\ufeff", "max_uses = -1",
}

// mutated is the text with a few things changed.
func mutated(r *rand.Rand, text string, files []string) string {
	for range 1 + r.IntN(8)/5 {
		at := r.IntN(len(text) + 1)
		to := min(len(text), at+1+r.IntN(12))
		lines := strings.SplitAfter(text, "\n")
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		switch r.IntN(14) {
		default:
			lines[i] = other(r, lines[i])
			text = strings.Join(lines, "")
		case 0:
			text = text[:at] + text[to:]
		case 1:
			text = text[:at] + splices[r.IntN(len(splices))] + text[at:]
		case 2:
			text = text[:at] + splices[r.IntN(len(splices))] + text[to:]
		case 3:
			lines = slices.Delete(slices.Clone(lines), i, i+1)
			text = strings.Join(lines, "")
		case 4:
			lines[i], lines[j] = lines[j], lines[i]
			text = strings.Join(lines, "")
		case 5:
			text = strings.Join(slices.Insert(slices.Clone(lines), i, lines[j]), "")
		case 6:
			if at < len(text) {
				text = text[:at] + string(rune(text[at]^byte(1<<r.IntN(7)))) + text[at+1:]
			}
		case 7:
			from := strings.SplitAfter(files[r.IntN(len(files))], "\n")
			text = strings.Join(slices.Insert(slices.Clone(lines), i, from[r.IntN(len(from))]), "")
		case 8:
			text = text[:at] + strings.ToUpper(text[at:to]) + text[to:]
		}
	}
	return text
}

// other is a line with one of its words in the place of another, or without it.
func other(r *rand.Rand, line string) string {
	words := strings.Split(line, ", ")
	i, j := r.IntN(len(words)), r.IntN(len(words))
	switch r.IntN(3) {
	case 0:
		return strings.Join(slices.Delete(words, i, i+1), ", ")
	case 1:
		words[i], words[j] = words[j], words[i]
	default:
		line = strings.NewReplacer("5", "0", "false", "true", "a.example", "c.example", "fs", "time", "kb_", "x_", "io-",
			"io-w").Replace(line)
		return line
	}
	return strings.Join(words, ", ")
}

// probes are all requests that the mutation tests ask, tools among them.
func probes(t testing.TB) []caps.Request {
	t.Helper()
	var list []caps.Request
	for _, s := range strings.Fields(universe) {
		reqs, err := caps.ParseRequest(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, reqs...)
	}
	for _, tool := range append(caps.Tools(), caps.ToolInfo{Name: "x", Category: "tools"}, caps.ToolInfo{
		Name:     "x/y",
		Category: "mcp",
	}) {
		list = append(list, caps.Request{Family: caps.Tool, Name: tool.Scope()})
	}
	return list
}

// P12: whatever is done to a file that narrows, it allows nothing that the base
// refuses and raises no limit: what comes of it is below the base, or the file
// is refused. The base here lacks something of every family. RLP_SOAK=1 makes it
// a million files.
//
//rlp:holds P12 Y12 Y25 A19
func TestMutatedLayerFiles(t *testing.T) {
	rounds := 8000
	switch {
	case os.Getenv("RLP_SOAK") == "1":
		rounds = 1_000_000
	case testing.Short():
		rounds = 800
	}
	r, files, all := rand.New(rand.NewPCG(12, 5)), layerFiles(), probes(t)
	b, _ := narrow(t, base(t, broad), layer(t, "[limits]\ncpu_fuel = 1000000\nhostcalls_max = 40\n"))
	var inBase []bool
	for _, q := range all {
		inBase = append(inBase, b.Check(q).Allow)
	}
	refused, narrowed := 0, 0
	for i := range rounds {
		text := mutated(r, files[r.IntN(len(files))], files)
		o, findings := policy.ParseLayer("l", "f", []byte(text), options)
		if (o == nil) != policy.HasErrors(findings) {
			t.Fatalf("round %d: refused %v, %v\n%s", i, o == nil, findings, text)
		}
		if o == nil {
			refused++
			continue
		}
		set, _, err := b.Narrow(o.Layer)
		if err != nil {
			t.Fatalf("round %d: %v\n%s", i, err, text)
		}
		less := false
		for k, q := range all {
			allow := set.Check(q).Allow
			if allow && !inBase[k] {
				t.Fatalf("round %d: %s is widened by\n%s", i, q, text)
			}
			less = less || !allow && inBase[k]
		}
		if less {
			narrowed++
		}
		limitsAreLower(t, b.Limits(), set.Limits(), text)
	}
	if refused < rounds/4 || narrowed < rounds/6 {
		t.Errorf("of %d files %d were refused and %d narrowed: the mutations show little", rounds, refused, narrowed)
	}
}

// P9: layers in another order, or there twice, leave the same set, by its digest.
//
//rlp:holds P9 Y1 Y21 Y22 Y23 Y26 A20
func TestShuffledLayers(t *testing.T) {
	r, files := rand.New(rand.NewPCG(9, 5)), layerFiles()
	b, some := base(t, broad), 0
	rounds := 150
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		var chosen []*caps.Layer
		for range 2 + r.IntN(4) {
			text := files[r.IntN(len(files))]
			if r.IntN(2) == 0 {
				text = mutated(r, text, files)
			}
			if o, _ := policy.ParseLayer("l", "f", []byte(text), options); o != nil {
				chosen = append(chosen, o.Layer)
			}
		}
		want := shown(t, b, chosen)
		some += min(1, len(chosen)/2)
		for range 3 {
			r.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
			twice := slices.Clone(chosen)
			if len(chosen) > 0 {
				twice = append(twice, chosen[r.IntN(len(chosen))])
			}
			if got := shown(t, b, twice); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
	}
	if some < rounds/2 {
		t.Errorf("%d of %d have two layers", some, rounds)
	}
}

func shown(t *testing.T, set caps.Set, layers []*caps.Layer) string {
	t.Helper()
	for _, l := range layers {
		set, _ = narrow(t, set, l)
	}
	var tools []string
	for _, tool := range caps.Tools() {
		tools = append(tools, fmt.Sprint(set.Check(caps.Request{Family: caps.Tool, Name: tool.Scope()}).Allow))
	}
	leases := set.Leases()
	for i := range leases {
		leases[i].Pos = caps.Pos{}
	}
	return fmt.Sprint(set.Digest(), set, tools, set.Limits().Map(), set.Constraints().Map(), leases)
}
