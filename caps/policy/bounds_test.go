package policy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// Lists that are printed are sorted and name everything once.
func TestListsAreSortedAndNameOnce(t *testing.T) {
	r := newReader(Options{Domains: []string{"zoo", "notes"}}, false)
	for name, list := range map[string][]string{
		"adapters": adapterNames(), "profiles": BuiltinProfiles(), "domains": r.domains(),
		"tools of a class": Danger{Tools: []string{"z:z", "a:a"}, Families: []caps.Family{caps.KBWrite}}.scopes(),
	} {
		if len(list) < 3 || !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Errorf("%s: %q", name, list)
		}
	}
	if got := strings.Join(constraintTables(), " "); got != "net fs kb exec model secrets env mcp agents" {
		t.Errorf("tables of [constraints]: %s", got)
	}
	if got := strings.Join(constrainable(),
		" "); got != "agent agents cache db env exec fs http kb llm mcp memory model net secrets sqlite" {
		t.Errorf("what can be constrained: %s", got)
	}
}

// A finding is written as its place, where it has one, its message, its hint,
// where there is one, and its code; an error is made of those that refuse.
func TestFindingsAreWritten(t *testing.T) {
	at := Finding{Path: "p", Line: 2, Column: 3, Severity: SeverityError, Code: CodeBadPath, Message: "m", Hint: "h"}
	bare := Finding{Severity: SeverityWarning, Code: CodePathRoot, Message: "n"}
	if at.String() != "p:2:3: error: m (h) [bad_path]" || bare.String() != "warning: n [path_root]" {
		t.Errorf("%s, %s", at, bare)
	}
	if err := AsError([]Finding{bare}); err != nil {
		t.Error(err)
	}
	if err := AsError([]Finding{at, bare, at}); err == nil || err.Error() != at.String()+"\n"+at.String() {
		t.Error(err)
	}
}

// Findings are in the order of file, line, column and code, and equal ones stay
// in the order in which they were found.
func TestFindingsAreInOrder(t *testing.T) {
	want := []Finding{
		{Path: "a", Line: 9, Column: 9, Code: "z"},
		{Path: "b", Line: 1, Column: 9, Code: "z"},
		{Path: "b", Line: 2, Column: 1, Code: "z"},
		{Path: "b", Line: 2, Column: 2, Code: "a", Message: "2"},
		{Path: "b", Line: 2, Column: 2, Code: "a", Message: "1"},
		{Path: "b", Line: 2, Column: 2, Code: "b"},
		{Path: "b", Line: 2, Column: 3, Code: "a"},
		{Path: "b", Line: 3, Column: 1, Code: "a"},
	}
	for shift := range want {
		got := slices.Concat(want[shift:], want[:shift])
		Sort(got)
		if shift == 4 { // where the equal ones stand in the other order
			want[3], want[4] = want[4], want[3]
		}
		if !slices.Equal(got, want) {
			t.Errorf("shifted by %d: %v", shift, got)
		}
		if shift == 4 {
			want[3], want[4] = want[4], want[3]
		}
	}
}

// Values of placeholders: what each becomes with and without a folder to start
// from and a home.
func TestValuesOfPlaceholdersAtTheirBounds(t *testing.T) {
	all := Given{Dir: "/d", Home: "/h"}
	for _, x := range []struct {
		given    Given
		in, want string // "" is refused
	}{
		{all, "~", "/h"},
		{all, "~/x", "/h/x"},
		{all, "~x", "/d/~x"},
		{all, "x/../y", "/d/y"},
		{all, "/x", "/x"},
		{all, "", ""},
		{Given{Dir: "/d"}, "~", ""},
		{Given{Dir: "/d"}, "~/x", ""},
		{Given{Home: "/h"}, "x", ""},
		{Given{}, "/x", "/x"},
	} {
		if got, err := x.given.Absolute(x.in); got != x.want || (err == nil) != (x.want != "") {
			t.Errorf("%+v of %q: %q, %v", x.given, x.in, got, err)
		}
	}
}

// What is wrong with the placeholders of a launch is said all at once: what is
// missing, what is no path, and what nobody declared.
func TestAllOfWhatPlaceholdersLackIsSaid(t *testing.T) {
	b := &Base{
		Entries:      []caps.Entry{{Grant: caps.Grant{Family: caps.Env, Modes: 1, Scope: "A"}}},
		Placeholders: []Placeholder{{Name: "notes", Rest: "/a", Modes: 1}, {Name: "typo"}},
	}
	declared := []Param{{Name: "notes", Description: "your notes"}, {Name: "out"}, {Name: "bad"}}
	_, err := b.Resolve(declared, Given{Values: map[string]Value{
		"bad": {Path: "x*"}, "ot": {Path: "/a"},
		"bed": {Path: "/a"},
	}})
	var e *ParamError
	if !errors.As(err, &e) || len(e.Missing) != 2 {
		t.Fatal(err)
	}
	const want = `missing parameter notes (your notes): give it with --param notes=PATH, or in the override's [params]
missing parameter out: give it with --param out=PATH, or in the override's [params]
error: the placeholder {typo} is not declared (add typo = { kind = "dir", description = "..." } under [params] of manifest.toml) [param_undeclared]
error: the value of bad: the path "x*" is relative: write an absolute path such as "/home/user/notes" [bad_param]
error: there is no placeholder "bed" (did you mean "bad"?) [param_undeclared]
error: there is no placeholder "ot" (did you mean "out"?) [param_undeclared]`
	if err.Error() != want {
		t.Errorf("%v", err)
	}
	if f := e.Findings; len(f) != 6 ||
		f[1].String() != "error: the placeholder {notes} (your notes) has no value (--param notes=PATH) [param_unset]" {
		t.Errorf("%v", e.Findings)
	}
	for name, names := range map[string][]string{"notas": {"notes"}, "NOTES": {"notes"}, "qwerty": {"notes"}, "a": nil} {
		hint := declareHint(name, names)
		if own := strings.HasPrefix(hint, "add "+name+" ="); own != (name == "qwerty" || name == "a") {
			t.Errorf("%s of %q: %s", name, names, hint)
		}
	}
}

// What a change of a layer is worth saying, and that a thing written once is
// said once, unless nobody knows where it was written.
func TestExtrasAreSaidOnce(t *testing.T) {
	g := func(f caps.Family, scope string) caps.Grant { return caps.Grant{Family: f, Modes: 1, Scope: scope} }
	at, other := caps.Pos{File: "f", Line: 1, Column: 2}, caps.Pos{File: "f", Line: 1, Column: 3}
	got := Extras([]caps.Change{
		{Kind: caps.Ignored, Grant: g(caps.Net, "a:443"), Source: at},
		{Kind: caps.Ignored, Grant: g(caps.Net, "a:80"), Source: at},
		{Kind: caps.Ignored, Grant: g(caps.Net, "a:80"), Source: other},
		{Kind: caps.Ignored, Grant: g(caps.Env, "A")},
		{Kind: caps.Ignored, Grant: g(caps.Env, "B")},
		{Kind: caps.Revoked, Grant: g(caps.KBRead, "notes_raw"), Source: at},
		{Kind: caps.Revoked, Grant: g(caps.KBRead, "notes"), Source: caps.Pos{File: "f", Line: 5}},
		{Kind: caps.Revoked, Grant: g(caps.MCP, "x_raw"), Source: caps.Pos{File: "f", Line: 6}},
	})
	var lines []string
	for _, f := range got {
		lines = append(lines, f.String())
	}
	const want = `f:1:2: warning: net: network:https:get@a is not in the base and is ignored (an override can only take away) [caps_extra]
f:1:3: warning: net: network:https:get@a:80 is not in the base and is ignored (an override can only take away) [caps_extra]
warning: env: env:read:A is not in the base and is ignored (an override can only take away) [caps_extra]
warning: env: env:read:B is not in the base and is ignored (an override can only take away) [caps_extra]
f:1:2: warning: this takes notes_raw away, and with it the sight of unmasked notes (to keep it, name it, or leave the key out) [raw_revoked]`
	if strings.Join(lines, "\n") != want {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
}

// A folder's name tells the kind of a document before its content does.
func TestFoldersTellKinds(t *testing.T) {
	for file, want := range map[string]Kind{
		"/h/overrides/a.toml": KindOverride, "/h/profiles/a.toml": KindProfile, "/h/templates/a.toml": KindTemplate,
		"/h/a.toml": KindPolicy, "a.caps": KindPolicy, "manifest.toml": KindManifest,
	} {
		if got := Detect(file, []byte("templates = []\n")); got != want {
			t.Errorf("%s is a %s", file, got)
		}
	}
	if got := Detect("x.toml", []byte("templates = []\n= broken")); got != KindOverride {
		t.Errorf("what cannot be read is a %s", got)
	}
	if f := Lint(KindProfile, "x.toml", []byte("name = \"y\"\n"), Options{}); len(f) != 1 || f[0].Code != CodeBadName {
		t.Errorf("a profile: %v", f)
	}
	if f := Lint(KindProfile, "x.toml", []byte("name = \"x\"\n"), Options{}); len(f) != 1 ||
		f[0].Code != CodeNoRestriction {
		t.Errorf("a profile: %v", f)
	}
}

// A floor that is asked for by its name is a profile: of the file that replaces
// it, or built in, with what it is about, and with a word where its file cannot
// be used.
func TestFloorsAreProfiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{Untrusted, Delegate} {
		for text, source := range map[string]string{
			"none": Builtin, "": Builtin, "[deny]\ncapabilities = []\n": "file",
			"deny = 1\n": Builtin,
		} {
			file := filepath.Join(dir, name+".toml")
			if text != "none" {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			p, findings, err := LoadProfile(name, file, Options{})
			if err != nil || p == nil {
				t.Fatalf("%s of %q: %v", name, text, err)
			}
			if source == "file" {
				source = file
			}
			if p.Source != source || p.Name != name || p.Description != floorAbout(name) || p.Layer.Name != "profile:"+name ||
				p.Layer.Because != 0 {
				t.Errorf("%s of %q: %+v, layer %s because %v", name, text, p, p.Layer.Name, p.Layer.Because)
			}
			refused := text == "" || text == "deny = 1\n"
			if told := len(findings) == 1 && findings[0].Code == CodeFloorKept && strings.Contains(findings[0].Message,
				file); told != refused || len(findings) > 1 {
				t.Errorf("%s of %q: %v", name, text, findings)
			}
		}
		if text, ok := ProfileText(name); !ok || text != FloorText(name) {
			t.Errorf("the text of %s: %v", name, ok)
		}
	}
	if floorAbout(Delegate) == floorAbout(Untrusted) || !strings.Contains(floorAbout(Delegate), "another one launched") {
		t.Error(floorAbout(Delegate))
	}
	if _, ok := ProfileText("nobody"); ok {
		t.Error("there is a profile nobody")
	}
	if p, f, err := LoadProfile("nobody", filepath.Join(dir, "nobody.toml"), Options{}); p != nil || f != nil ||
		err != nil {
		t.Errorf("%v, %v, %v", p, f, err)
	}
	own := filepath.Join(dir, "own.toml")
	for text, good := range map[string]bool{"[deny]\ncapabilities = []\n": true, "deny = 1\n": false, "": false} {
		if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, f, err := LoadProfile("own", own, Options{})
		if err != nil || (p != nil) != good || HasErrors(f) == good || good && string(p.Data) != text {
			t.Errorf("%q: %v, %v, %v", text, p, f, err)
		}
	}
}

// No file is no word, where the folder is missing too; what cannot be read is an
// error, and an empty file is not none.
func TestAFileThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	looks := Options{Stat: os.Stat}
	file := filepath.Join(dir, "x.toml")
	for _, opt := range []Options{{}, looks} {
		if data, err := readOptional(file, opt); data != nil || err != nil {
			t.Errorf("no file: %q, %v", data, err)
		}
	}
	if data, err := readOptional(filepath.Join(dir, "no", "x.toml"), looks); data != nil || err != nil {
		t.Errorf("no folder: %q, %v", data, err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := readOptional(file, looks); data == nil || err != nil {
		t.Errorf("an empty file: %v, %v", data, err)
	}
	if data, err := readOptional(dir, looks); data != nil || err == nil {
		t.Errorf("a folder: %q, %v", data, err)
	}
}

// A layer that takes away from a base bounds; a base has no bounds.
func TestABaseHasNoBounds(t *testing.T) {
	for _, layer := range []bool{false, true} {
		r := newReader(Options{}, layer)
		root, ok := r.parse("f", []byte("[capabilities]\ntime = false\nexec = []\nfs = []\n"))
		if !ok {
			t.Fatal(r.findings)
		}
		r.root(root, KindProfile)
		if n := len(r.bounds); n != map[bool]int{false: 0, true: 3}[layer] || !r.restricts {
			t.Errorf("layer %v: %d bounds, restricts %v", layer, n, r.restricts)
		}
	}
}

// The tools of a floor that no host call has yet are worth no word in a copy of
// the floor, and are in every other document, as is another name in the copy.
func TestOnlyFloorsSpeakOfToolsToCome(t *testing.T) {
	for _, x := range []struct {
		kind       Kind
		file, tool string
		told       bool
	}{
		{KindProfile, "_untrusted.toml", "mcp:server_install", false},
		{KindProfile, "_delegate.toml", "tools:tool_install", false},
		{KindProfile, "_untrusted.toml", "mcp:server_instal", true},
		{KindProfile, "writer.toml", "mcp:server_install", true},
		{KindOverride, "_untrusted.toml", "mcp:server_install", true},
	} {
		r, ok := readLayer(x.file, []byte("[deny]\ntools = [\""+x.tool+"\"]\n"), x.kind, Options{})
		if told := len(r.findings) == 1 && r.findings[0].Code == CodeUnknownTool; !ok || told != x.told ||
			len(r.findings) > 1 {
			t.Errorf("%s %s of %s: %v", x.kind, x.file, x.tool, r.findings)
		}
	}
	for _, e := range BuiltinFloor(Untrusted).Deny {
		if e.Pos.File != "_untrusted.toml (built-in)" || !e.Implied {
			t.Errorf("%s comes from %s", e.Grant, e.Pos)
		}
	}
}

// A file with almost the name of a floor is told where the floor's own is not
// there, and is none of its business where it is; a folder that cannot be listed
// is an error.
func TestAlmostTheNameOfAFloor(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, Untrusted+".toml")
	for _, x := range []struct{ make, warns string }{
		{Untrusted + ".yaml", "_untrusted.yaml is not read"},
		{Untrusted + ".toml", ""},
	} {
		if err := os.WriteFile(filepath.Join(dir, x.make), []byte("[deny]\ncapabilities = []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		l, warning := Floor(Untrusted, file, Options{})
		if (warning == "") != (x.warns == "") || !strings.Contains(warning, x.warns) ||
			(len(l.Deny) == 0) != (x.warns == "") {
			t.Errorf("with %s: %q, %d denials", x.make, warning, len(l.Deny))
		}
	}
	if err := misnamed(filepath.Join(file, "x.toml"), "x"); err == nil {
		t.Error("a file is listed as a folder")
	}
	if err := misnamed(filepath.Join(dir, "none", "x.toml"), "x"); err != nil {
		t.Error(err)
	}
}
