package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/sdktest"
)

// denying is a disk of which the host withholds some paths.
type denying struct {
	disk
	paths []string
}

func (d denying) deny(op, p string) error {
	for _, bad := range d.paths {
		if strings.HasSuffix(p, bad) {
			return &fs.PathError{Op: op, Path: p, Err: fs.ErrPermission}
		}
	}
	return nil
}

func (d denying) ReadDir(p string) ([]fs.DirEntry, error) {
	if err := d.deny("open", p); err != nil {
		return nil, err
	}
	return d.disk.ReadDir(p)
}

func (d denying) Open(p string) (fs.File, error) {
	if err := d.deny("open", p); err != nil {
		return nil, err
	}
	return d.disk.Open(p)
}

func (d denying) Readlink(p string) (string, error) {
	if err := d.deny("readlink", p); err != nil {
		return "", err
	}
	return d.disk.Readlink(p)
}

var defaults = options{large: 1 << 20, top: 20}

// tree writes files and links ("-> target") beneath a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(p), 0o755)
		if target, ok := strings.CutPrefix(content, "-> "); ok && err == nil {
			err = os.Symlink(target, p)
		} else if err == nil {
			err = os.WriteFile(p, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.ToSlash(dir)
}

// kinds lists findings as "path:line kind".
func kinds(found []finding) []string {
	var list []string
	for _, f := range found {
		s := f.path
		if f.line > 0 {
			s += ":" + string(rune('0'+f.line))
		}
		list = append(list, s+" "+f.kind.String())
	}
	return list
}

// pem is a key as a file would hold it, split so that this file holds none.
const pem = "-----BEGIN " + "PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA\n-----END " + "PRIVATE KEY-----\n"

func TestSuspicious(t *testing.T) {
	r := audit(osDisk{}, tree(t, map[string]string{
		"a/deploy.yaml":   "x: 1\nkey: |\n" + strings.ReplaceAll(pem, "PRIVATE", "OPENSSH PRIVATE"),
		"b.go":            "const begin = \"-----BEGIN \" + \"PRIVATE KEY-----\"\n// -----BEGIN PRIVATE KEY-----\n",
		"ci.sh":           "#!/bin/sh\n\nexport T=ghp_" + strings.Repeat("a1", 18) + "\n",
		"src/.env":        "A=b\n",
		"src/.env.local":  "A=b\n",
		"src/.env.sample": "A=\n",
		"src/.envrc":      "use nix\n",
		"id_ed25519":      "x",
		"certs/site.P12":  "x",
		"bin/tool":        "\x7fELF\x02\x01",
		"x.wasm":          "\x00asm\x01\x00\x00\x00",
		"trojan.c":        "ok\nif (a) { //\u202e }\n",
		"arrow.md":        "\u2192 \u2014 \u2030\n",
		"logo.png":        "\x89PNG\x00\x00AKIA" + strings.Repeat("A", 16),
		"in":              "-> a/deploy.yaml",
		"a/up":            "-> ../b.go",
		"out":             "-> /etc/passwd",
		"a/out":           "-> ../../x",
		".git/config":     "ghp_" + strings.Repeat("a1", 18),
	}), defaults)
	want := []string{
		"a/deploy.yaml:3 private_key", "ci.sh:3 token", "src/.env env_file", "src/.env.local env_file",
		"certs/site.P12 key_file", "id_ed25519 key_file",
		"a/out link_outside", "out link_outside", "trojan.c:2 bidi_control", "bin/tool binary", "x.wasm binary",
	}
	if got := kinds(r.findings); !slices.Equal(got, want) {
		t.Errorf("findings\n got %q\nwant %q", got, want)
	}
	if !slices.Equal(r.skipped, []string{".git"}) || len(r.problems) != 0 {
		t.Errorf("skipped %q, problems %v", r.skipped, r.problems)
	}
}

func TestTokenShapes(t *testing.T) {
	for _, p := range patterns {
		good := p.prefix + strings.Repeat("A", p.length)
		for _, text := range []string{good, "x = \"" + good + "\"\n", "-" + good + ","} {
			if at := p.find([]byte(text)); at != strings.Index(text, good) {
				t.Errorf("%s: %q not found (%d)", p.name, text, at)
			}
		}
		for _, text := range []string{
			"", p.prefix, good[:len(good)-1], "x" + good, p.prefix + " " + good[len(p.prefix):],
			strings.ToLower(p.prefix) + "é",
		} {
			if at := p.find([]byte(text)); at >= 0 {
				t.Errorf("%s: found in %q", p.name, text)
			}
		}
		if p.also == "" && p.find([]byte(good+"A")) >= 0 {
			t.Errorf("%s: found in a longer word", p.name)
		}
	}
}

// No report holds what it reports.
func TestSecretsAreNotRepeated(t *testing.T) {
	h := sdktest.New(t)
	secret := "AKIA" + "QWERTYUIOPASDFGH"
	out := run(osDisk{}, tree(t, map[string]string{"a.txt": "k=" + secret, "k.pem": pem}), defaults)
	for _, text := range [][]byte{out, h.Result} {
		if !bytes.Contains(text, []byte(`"suspicious":`)) || bytes.Contains(text, []byte(secret[4:])) ||
			bytes.Contains(text, []byte("MC4CAQ")) {
			t.Errorf("report %s", text)
		}
	}
}

func TestLargeAndDuplicates(t *testing.T) {
	r := audit(osDisk{}, tree(t, map[string]string{
		"a": strings.Repeat("x", 100), "b/a": strings.Repeat("x", 100), "b/c": strings.Repeat("x", 100),
		"same-size": strings.Repeat("y", 100), "p": "12345", "q": "12345", "e1": "", "e2": "", "s": "99",
	}), options{large: 100, top: 2})
	if got := r.large(); len(got) != 4 || got[0].path != "a" || got[3].path != "same-size" {
		t.Errorf("large %v", got)
	}
	if len(r.duplicates) != 2 {
		t.Fatalf("duplicates %v", r.duplicates)
	}
	first, second := r.duplicates[0], r.duplicates[1]
	if first.wasted() != 200 || !slices.Equal(first.paths, []string{"a", "b/a", "b/c"}) || !slices.Equal(second.paths,
		[]string{"p", "q"}) {
		t.Errorf("duplicates %v", r.duplicates)
	}
	// sha256("12345"), by another program
	if second.sha256 != "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5" {
		t.Errorf("sha256 %s", second.sha256)
	}
	var report struct {
		Totals struct {
			Files, Bytes, Large, Duplicates int
			Wasted                          int `json:"wasted_bytes"`
		}
		Large []any
	}
	if err := json.Unmarshal(r.json(""), &report); err != nil {
		t.Fatal(err)
	}
	if tt := report.Totals; tt.Files != 9 || tt.Bytes != 412 || tt.Large != 4 || tt.Duplicates != 2 || tt.Wasted != 205 ||
		len(report.Large) != 2 {
		t.Errorf("report %+v", report)
	}
}

// Files larger than the buffer are told apart by what lies behind it.
func TestLongFilesAreHashedWhole(t *testing.T) {
	long := strings.Repeat("x", scanMax)
	r := audit(osDisk{}, tree(t, map[string]string{"a": long + "1", "b": long + "1", "c": long + "2"}), defaults)
	if len(r.duplicates) != 1 || !slices.Equal(r.duplicates[0].paths, []string{"a", "b"}) {
		t.Errorf("duplicates %v", r.duplicates)
	}
}

// What is withheld is reported and costs nothing else; the control is the same
// tree with nothing withheld.
func TestDenied(t *testing.T) {
	h := sdktest.New(t)
	dir := tree(t, map[string]string{
		"a": "one", "b": "one", "sub/.env": "two", "sub/c": "one", "shut/d": "x",
		"l": "-> /etc",
	})
	if r := audit(osDisk{}, dir, defaults); len(r.problems) != 0 || len(r.files) != 5 {
		t.Fatalf("control: %v, %d files", r.problems, len(r.files))
	}
	d := denying{osDisk{}, []string{"/shut", "/sub/.env", "/l", "/b"}}
	h.Deny("result", "", &sdk.Error{Errno: sdk.ErrDenied, Reason: "budget_exhausted"})
	var report struct {
		Totals     struct{ Files, Duplicates int }
		Suspicious []struct{ Path, Kind string }
		Problems   []struct{ Doing, Target, Why string }
	}
	if err := json.Unmarshal(run(d, dir, defaults), &report); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range report.Problems {
		got = append(got, p.Doing+" "+p.Target+": "+p.Why)
	}
	want := []string{
		"read b: denied", "read link l: denied", "list shut: denied", "read sub/.env: denied",
		"return the result: denied (budget_exhausted)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems\n got %q\nwant %q", got, want)
	}
	if report.Totals.Files != 2 || report.Totals.Duplicates != 1 || len(report.Suspicious) != 1 ||
		report.Suspicious[0].Path != "sub/.env" {
		t.Errorf("report %+v", report)
	}
	whole := audit(denying{osDisk{}, []string{dir}}, dir, defaults)
	if len(whole.problems) != 1 || whole.problems[0] != (problem{"list", dir, "denied"}) {
		t.Errorf("a tree that is withheld: %v", whole.problems)
	}
}

func TestRepeatable(t *testing.T) {
	files := map[string]string{}
	for i := range 60 {
		files["d"+string(rune('a'+i%26))+"/f"+string(rune('a'+i/26))] = strings.Repeat("z", i/3+1)
	}
	dir := tree(t, files)
	first := audit(osDisk{}, dir, defaults).json("")
	for range 5 {
		if again := audit(osDisk{}, dir+"/", defaults).json(""); !bytes.Equal(first, again) {
			t.Fatalf("%s\n%s", first, again)
		}
	}
}

func TestParseOptions(t *testing.T) {
	for args, want := range map[string]options{
		"":                             defaults,
		"--large 512KiB --top 3":       {512 << 10, 3},
		"--large=2GB":                  {2e9, 20},
		"--top=0 --large 0":            {0, 0},
		"--large 9223372036854775807B": {1<<63 - 1, 20},
	} {
		if got, err := parseOptions(strings.Fields(args)); err != nil || got != want {
			t.Errorf("%q: %+v, %v", args, got, err)
		}
	}
	for _, args := range []string{
		"--large", "--large x", "--large -1", "--large 1XB", "--large 9223372036854775808",
		"--large 9000000000GiB", "--top 1k", "--top -1", "--top 99999999999", "--topp 1", "tree", "--large=",
	} {
		if got, err := parseOptions(strings.Fields(args)); err == nil {
			t.Errorf("%q: read as %+v", args, got)
		}
	}
}

func FuzzByContent(f *testing.F) {
	for _, s := range []string{pem, "ghp_", "\xe2\x80", "\xe2\x80\xae", "-----BEGIN ", "AKIAAKIAAKIA"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, x := range byContent("n", content) {
			if lines := 1 + bytes.Count(content, []byte("\n")); x.line < 0 || x.line > lines {
				t.Errorf("line %d of %d: %q", x.line, lines, content)
			}
		}
		if bidiAt(content) >= 0 != strings.ContainsAny(string(content),
			"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069") {
			t.Errorf("bidi in %q: %d", content, bidiAt(content))
		}
	})
}

// moduleMax is the largest that the module may be, in bytes: every launch decodes
// and validates it.
const moduleMax = 3 << 20

// The module can return a result and read what WASI shows it; no import of it
// reaches anything else.
func TestModuleImports(t *testing.T) {
	module := sdktest.Build(t, ".")
	if len(module) > moduleMax {
		t.Errorf("the module has %d bytes, more than %d", len(module), moduleMax)
	}
	imports, err := sdktest.Imports(module)
	if err != nil {
		t.Fatal(err)
	}
	names := sdktest.Names(imports)
	slices.Sort(names)
	if want := []string{"runloop_v1.response_read", "runloop_v1.result"}; !slices.Equal(names, want) {
		t.Errorf("imports %v, want %v", names, want)
	}
}

func TestAsAProgram(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "tree_audit")
	if text, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, c := range []struct {
		args, env, says string
		exit            int
	}{
		{"--larg 1", "RLP_PARAM_TREE=/", `unknown argument "--larg"`, 2},
		{"", "X=", "--param tree=DIR", 2},
		{"--top 1", "RLP_PARAM_TREE=/nonexistent", `"why": "does not exist"`, 0},
	} {
		cmd := exec.Command(bin, strings.Fields(c.args)...)
		cmd.Env = []string{c.env}
		text, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != c.exit || !strings.Contains(string(text), c.says) {
			t.Errorf("%s %s: exit %d: %s", c.args, c.env, cmd.ProcessState.ExitCode(), text)
		}
	}
}
