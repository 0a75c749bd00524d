package policy_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// A corpusCase is one archive of the corpus as documents and as a set.
type corpusCase struct {
	set     caps.Set
	changes []string
	bases   []doc
	layers  []doc
	names   []string // of layers
	home    string   // of the built-in layer, "" without one
	tenant  string
	file    map[string]string
}

func openCase(t *testing.T, path string) *corpusCase {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &corpusCase{file: map[string]string{}}
	for _, f := range archive.Files {
		c.file[f.Name] = string(f.Data)
	}
	b, findings := policy.ParseBase("base.caps", []byte(c.file["base.caps"]), options)
	if b == nil {
		t.Fatal(findings)
	}
	c.bases = append(c.bases, plainDoc(t, c.file["base.caps"]))
	if text, ok := c.file["requires.toml"]; ok {
		requires, findings := policy.ParseRequires(table(parse(t, "requires.toml", text), "requires"), nil, b.Schema, options)
		if requires == nil {
			t.Fatal(findings)
		}
		b = policy.Join(b, requires)
		c.bases = append(c.bases, doc{"capabilities": plainDoc(t, text)["requires"]})
	}
	if c.set, err = caps.Base(b.Entries, b.Limits); err != nil {
		t.Fatal(err)
	}
	c.narrow(t, archive)
	return c
}

func (c *corpusCase) narrow(t *testing.T, archive *txtar.Archive) {
	t.Helper()
	if text, ok := c.file["protected"]; ok {
		words := append(strings.Fields(text), "")
		c.home, c.tenant = words[0], words[1]
		c.apply(t, policy.Protected(c.home, c.tenant))
	}
	var names []string
	for _, f := range archive.Files {
		if strings.HasPrefix(f.Name, "layer-") {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		o, findings := policy.ParseLayer(name, name, []byte(c.file[name]), options)
		if o == nil {
			t.Fatal(findings)
		}
		c.layers, c.names = append(c.layers, plainDoc(t, c.file[name])), append(c.names, name)
		c.apply(t, o.Layer)
	}
}

func (c *corpusCase) apply(t *testing.T, l *caps.Layer) {
	t.Helper()
	set, changes := narrow(t, c.set, l)
	c.set = set
	for _, ch := range changes {
		c.changes = append(c.changes, fmt.Sprintf("%s %s %s %d", ch.Kind, strings.Join(ch.Grant.Strings(), "+"), ch.Layer,
			ch.Source.Line))
	}
}

// oracle decides by strings: the layer that refuses, "" if none does.
func (c *corpusCase) oracle(a ask) string {
	if !slices.ContainsFunc(c.bases, func(d doc) bool { return oracleBase(d, a) }) {
		return "base"
	}
	if c.home != "" && a.family == caps.FS && oracleProtects(c.home, c.tenant, a.name) {
		return "protected"
	}
	for i, l := range c.layers {
		if !oracleLayer(l, a) {
			return c.names[i]
		}
	}
	return ""
}

func oracleProtects(home, tenant, p string) bool {
	spare := home + "/artifacts"
	if tenant != "" {
		spare = home + "/tenants/" + tenant + "/artifacts"
	}
	return underAny([]string{home, "/proc", "/sys", "/dev"}, p) && !underAny([]string{spare}, p)
}

// asked turns a request of the algebra back into words.
func asked(t *testing.T, r caps.Request) ask {
	t.Helper()
	a := ask{family: r.Family, name: r.Name}
	switch r.Family {
	case caps.FS:
		a.verb = []string{"read", "write", "delete"}[r.Mode]
	case caps.Secrets:
		a.verb = []string{"get", "use"}[r.Mode]
	case caps.Net:
		if r.Mode == caps.Bytes {
			a.scheme = "tcp"
			return a
		}
		for _, s := range []string{"https", "http"} {
			for _, m := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
				if mode, _ := caps.NetMode(s, m); mode == r.Mode {
					a.scheme, a.method = s, m
					return a
				}
			}
		}
		t.Fatalf("mode %d of net has no method", r.Mode)
	}
	return a
}

// Every archive of the corpus, from its text: what is asked, what is left and
// what is told, decided by reader and algebra, and by the strings alone.
//
//rlp:holds R6 R22 R34 R40 R41 R42 R43 R44 R45 R48 R49 R77
func TestCorpus(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/corpus/*.txtar")
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d archives, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			c := openCase(t, path)
			for _, line := range lines(c.file["requests"]) {
				c.check(t, line)
			}
			left := c.set.Strings()
			for _, g := range c.set.Except() {
				for _, s := range g.Strings() {
					left = append(left, "-"+s)
				}
			}
			same(t, "effective", left, lines(c.file["effective"]))
			if text, ok := c.file["changes"]; ok {
				same(t, "changes", c.changes, lines(text))
			}
		})
	}
}

func (c *corpusCase) check(t *testing.T, line string) {
	t.Helper()
	w := append(strings.Fields(line), "", "")
	requests, err := caps.ParseRequest(w[1])
	if err != nil || len(requests) == 0 {
		t.Fatalf("%s: %v", line, err)
	}
	got := [3]string{"allow"}
	for _, r := range requests {
		d := c.set.Check(r)
		refuser := ""
		if !d.Allow {
			refuser = c.set.LayerName(d.Layer)
		}
		if want := c.oracle(asked(t, r)); refuser != want {
			t.Errorf("%s (%s): refused by %q, the oracle says %q", line, r, refuser, want)
		}
		if !d.Allow && got[0] == "allow" {
			got = [3]string{"deny", d.Code.String(), refuser}
		}
	}
	if got != [3]string{w[0], w[2], w[3]} {
		t.Errorf("%s: got %v", line, got)
	}
}

func lines(text string) []string {
	var out []string
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
			out = append(out, l)
		}
	}
	return out
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}
