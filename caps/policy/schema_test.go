package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/tomlfile"
)

func compiled(t testing.TB, kind policy.Kind) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(policy.Schema(kind)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	name := "https://runloop.dev/schema/" + string(kind) + ".json"
	if err := c.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plain is a document as an editor's TOML reader hands it to a validator.
func plain(t testing.TB, text string) (any, bool) {
	t.Helper()
	root, err := tomlfile.Parse("f", []byte(text))
	if err != nil {
		return nil, false
	}
	data, err := json.Marshal(root.Plain())
	if err != nil {
		return nil, false // nan and inf have no JSON
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v, true
}

// bySchemaUnseen are the refusals that a schema cannot see: they are of the text, of
// its cleaning, of lists that a config extends, or of features to come.
var bySchemaUnseen = []policy.Code{
	policy.CodeSyntax, policy.CodeBadDomain, policy.CodeTwoSpellings,
	policy.CodeBadProgram,
}

// The schema refuses what the parser refuses and takes what it takes.
func TestSchemaAgrees(t *testing.T) {
	schemas := map[byte]*jsonschema.Schema{'b': compiled(t, policy.KindPolicy), 'l': compiled(t, policy.KindOverride)}
	unseen := []string{
		"line end in a path", "port too high", "number in disguise", "limit overflows in its unit", "money too little",
		"placeholder escapes", "deny no capability", "another's name", "lease of no capability", "lease without a zone",
		"lease that ends in a string",
		"constraints beside capabilities", "limit decimal", // JSON knows no difference between 1.0 and 1
	}
	seen := 0
	for _, c := range refusals() {
		v, ok := plain(t, c.text)
		if !ok || slices.Contains(bySchemaUnseen, c.code) || slices.Contains(unseen, c.name) {
			continue
		}
		for i := range len(c.readings) {
			seen++
			if err := schemas[c.readings[i]].Validate(v); err == nil {
				t.Errorf("%s/%c: the schema takes what the parser refuses: %q", c.name, c.readings[i], c.text)
			}
		}
	}
	if seen < 120 {
		t.Errorf("only %d refusals were compared", seen)
	}
	for _, text := range []string{
		"", full, broad, withParams, "[capabilities]\nfs=[]\nnet=[]\nmodel=[]\nexec=[]\nsecrets=[]\nkb_read=true\n",
		"[capabilities]\nfs=[\"~\"]\nnet={hosts=[\"[::1]:443\",\"localhost\"],allow_http=true}\nexec=true\n[limits]\nmax_steps=1\nmodel_usd=0.5\n",
	} {
		v, _ := plain(t, text)
		if err := schemas['b'].Validate(v); err != nil {
			t.Errorf("policy %q: %v", text, err)
		}
	}
	for _, text := range []string{
		"", "schema=\"0.2\"\nschema_version=\"1.0\"\nname=\"f\"\n[deny]\ntools=[\"*\",\"web:*\"]\ntiers=[\"network\"]\neffects=[\"io\"]\n[tools]\nallow=[\"mcp__a__b\"]\n" +
			"[visible]\ncategories=[\"nonsense\"]\n[constraints.net]\nhosts=[\"*.a.example\"]\nmin_tls=\"1.3\"\nallow_redirects=false\n[leases]\n\"fs:read:/a\"={max_uses=0}\n",
		"[capabilities]\nfs=false\nnet={allow_http=false}\ntime=true\n[deny]\ncapabilities=[\"exec:*:*\",\"kb:write:*\",\"net:a.example:443\"]\n[params]\nnotes=\"~/n\"\n",
	} {
		v, _ := plain(t, text)
		if err := schemas['l'].Validate(v); err != nil {
			t.Errorf("override %q: %v", text, err)
		}
	}
}

func TestSchemaOfFiles(t *testing.T) {
	files, _ := filepath.Glob("../../testdata/runloop-bundles/*/*.*")
	if len(files) != 7 {
		t.Fatalf("%d files", len(files))
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := plain(t, string(data))
		err = compiled(t, policy.Detect(path, data)).Validate(v)
		if mailer := strings.Contains(path, "mailer"); (err != nil) != mailer {
			t.Errorf("%s: %v", path, err)
		}
	}
	m := compiled(t, policy.KindManifest)
	head := "[agent]\nname = \"a\"\nkind = \"wasm32-wasip1\"\n"
	for text, good := range map[string]bool{
		head: true, head + "[params]\nnotes = { kind = \"dir\" }": true, head + "[requires]\nkb_read = true": true,
		head + "[requires]\nkbread = true": false, head + "[params]\nnotes = { kind = \"x\" }": false,
		head + "[limits]\ncpu_fuel = -1":                    false,
		"[agent]\nname = \"A\"\nkind = \"wasm32-wasip1\"\n": false, head + "extra = 1": false,
		head + "[caps]\nfile = \"/etc/x\"": false, "": false,
	} {
		v, _ := plain(t, text)
		if err := m.Validate(v); (err == nil) != good {
			t.Errorf("manifest %q: %v", text, err)
		}
	}
}

// The schema, the parser and the table of families cannot drift apart: every
// family has a key, every key and limit is in the schema, and every key has its
// words there.
func TestSchemaIsComplete(t *testing.T) {
	var doc struct {
		Properties struct {
			Capabilities struct {
				Properties map[string]struct{ Description string }
			}
			Limits struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(policy.Schema(policy.KindPolicy), &doc); err != nil {
		t.Fatal(err)
	}
	keys := doc.Properties.Capabilities.Properties
	for f := range caps.NumFamilies {
		if keys[f.String()].Description == "" {
			t.Errorf("no key %s", f)
		}
	}
	if len(keys) != int(caps.NumFamilies)+2 {
		t.Errorf("%d keys", len(keys))
	}
	for l := range caps.NumLimits {
		if doc.Properties.Limits.Properties[l.String()] == nil {
			t.Errorf("no limit %s", l)
		}
	}
	if n := len(doc.Properties.Limits.Properties); n != int(caps.NumLimits)+3 {
		t.Errorf("%d limits", n)
	}
	for _, k := range []policy.Kind{
		policy.KindPolicy, policy.KindManifest, policy.KindOverride, policy.KindProfile,
		policy.KindTemplate,
	} {
		if !bytes.Equal(policy.Schema(k), policy.Schema(k)) {
			t.Errorf("%s is not stable", k)
		}
	}
}

// Every code is in the table once, with its meaning, and the table is what the
// documents say.
func TestCodes(t *testing.T) {
	seen := map[policy.Code]bool{}
	for _, c := range policy.Codes() {
		if seen[c.Code] || c.Meaning == "" || c.Code.Severity() != c.Severity {
			t.Errorf("%+v", c)
		}
		seen[c.Code] = true
	}
	if policy.Code("made up").Severity() != policy.SeverityError {
		t.Error("a code that nobody knows is no trifle")
	}
	f := policy.Finding{Path: "p", Line: 2, Column: 3, Severity: "error", Code: "bad_path", Message: "m", Hint: "h"}
	data, _ := json.Marshal(f)
	if string(data) != `{"path":"p","line":2,"column":3,"severity":"error","code":"bad_path","message":"m","hint":"h"}` {
		t.Errorf("%s", data)
	}
	if f.String() != "p:2:3: error: m (h) [bad_path]" {
		t.Error(f)
	}
}

//rlp:holds R60
func TestDetectAndLint(t *testing.T) {
	for file, want := range map[string]policy.Kind{
		"a/policy.caps": policy.KindPolicy, "x.caps": policy.KindPolicy, "b/manifest.toml": policy.KindManifest,
		"/h/caps/overrides/a.toml": policy.KindOverride, "/h/caps/profiles/_untrusted.toml": policy.KindProfile,
		"/h/caps/templates/a.toml": policy.KindTemplate, "x.toml": policy.KindOverride,
	} {
		if got := policy.Detect(file, nil); got != want {
			t.Errorf("%s: %s", file, got)
		}
	}
	for text, want := range map[string]policy.Kind{
		"[agent]\nname = \"x\"": policy.KindManifest, "templates = []": policy.KindPolicy, "[deny]": policy.KindOverride,
		"= broken": policy.KindOverride,
	} {
		if got := policy.Detect("x.toml", []byte(text)); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
	for _, c := range []struct {
		kind policy.Kind
		text string
		want string
	}{
		{policy.KindPolicy, "[capabilities]\nexec = true\nfs = [\"x\"]", "[exec_any 2 fs_read_only 3 bad_path 3]"},
		{policy.KindOverride, "[capabilities]\nexec = true\nfs = true", "[wrong_type 3]"},
		{policy.KindTemplate, "templates = []\n[params]\n", "[misplaced_key 1 misplaced_key 2]"},
		{policy.KindManifest, "[requires]\nfs = [\"{a}\"]\n[limits]\nmax_depth = -1\n", "[bad_limit 4]"},
		{policy.KindManifest, "[requires]\nfs_rw = [\"{a}\"]\n", "[param_undeclared 2]"},
		{policy.KindManifest, "requires = 1\n", "[wrong_type 1]"},
		{policy.KindManifest, "= x", "[syntax 1]"},
	} {
		var got []string
		for _, f := range policy.Lint(c.kind, "f", []byte(c.text), options) {
			if f.Code == policy.CodeFSReadOnly && c.kind == policy.KindManifest {
				continue
			}
			got = append(got, fmt.Sprint(f.Code, " ", f.Line))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s %q: %v", c.kind, c.text, got)
		}
	}
	if f := policy.FileFinding("p", os.ErrPermission); f.Severity != policy.SeverityError || f.Path != "p" {
		t.Error(f)
	}
}
