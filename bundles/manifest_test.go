package bundles

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/quick"

	"runloop.dev/rlp/internal/base/tomlfile"
)

func parse(t *testing.T, text string) *Manifest {
	t.Helper()
	m, err := ParseManifest("m.toml", []byte(text))
	if err != nil {
		t.Fatalf("parsing %s: %v", text, err)
	}
	return m
}

// What users of the public system have on disk.
func TestPublicManifest(t *testing.T) {
	text, err := os.ReadFile("testdata/runloop/writer/manifest.toml")
	must(t, err)
	m := parse(t, string(text))
	if m.Agent.String() != "writer" || m.Version != "0.1.0" || m.Policy == nil || m.Policy.Path != "policy.caps" {
		t.Errorf("%+v", m)
	}
	if m.Entry.Path != "bin/writer.wasm" ||
		m.Entry.BLAKE3 != "01321aa8d3fda1acdcff32a5bacaad1349ab611e8869d1a3fc15872024d5d39b" {
		t.Errorf("entry %+v", m.Entry)
	}
	if a := m.Artifacts["tools"]; a.Path != "tools.json" || a.Version != 1 || a.BLAKE3 == "" {
		t.Errorf("tools %+v", a)
	}
	if !reflect.DeepEqual(m.In, []string{"intent.draft.email.v1"}) || !reflect.DeepEqual(m.Out,
		[]string{"artifact.draft.email.v1"}) {
		t.Errorf("ports %v %v", m.In, m.Out)
	}
	var got any
	must(t, json.Unmarshal(m.Schemas["with"], &got))
	want := map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{"topic"},
		"properties": map[string]any{"topic": map[string]any{"type": "string", "minLength": 1.0}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("schema %v", got)
	}
}

const agentHead = "[agent]\nname = \"writer\"\nversion = \"0.1.0\"\nkind = \"wasm32-wasip1\"\n"

const entryLine = "entry_wasm = { path = \"a.wasm\" }\n"

// The module is named in [agent], at the top, or in a table of its own.
func TestPlacesOfTheEntry(t *testing.T) {
	for _, text := range []string{
		agentHead + entryLine,
		entryLine + agentHead,
		agentHead + "[entry_wasm]\npath = \"a.wasm\"\n",
		agentHead + "[agent.entry_wasm]\npath = \"a.wasm\"\n",
		agentHead + "entry_wasm.path = \"a.wasm\"\n",
	} {
		if m := parse(t, text); m.Entry.Path != "a.wasm" {
			t.Errorf("%s: %+v", text, m.Entry)
		}
	}
}

func TestWholeManifest(t *testing.T) {
	m := parse(t, `
[agent]
name = "writer"
version = "1.2.3-rc.1+b"
kind = "wasm32-wasip1"
variant = "small"
description = "Writes.\nThen stops."
entry_wasm = { path = "bin/a.wasm", sha256 = "`+strings.Repeat("AB", 32)+`", blake3 = "`+strings.Repeat("cd", 32)+`" }
[caps]
file = "caps/mine.caps"
[requires]
time = true
kb_read = ["contacts"]
[limits]
wall_time_ms = 1000
[params]
notes = { kind = "dir", description = "where the notes are" }
list = { kind = "file" }
[artifacts.b]
path = "b.bin"
[artifacts.a]
path = "a.bin"
version = 2
[build]
command = ["make", "a b"]
output = "out/a.wasm"
`)
	if want := (&BuildStep{[]string{"make", "a b"}, "out/a.wasm", m.Build.Pos}); !reflect.DeepEqual(m.Build, want) ||
		m.Build.Pos.Line != 25 {
		t.Errorf("build %+v", m.Build)
	}
	if m.Variant != "small" || m.Description != "Writes.\nThen stops." || m.Entry.SHA256 != strings.Repeat("ab", 32) {
		t.Errorf("%+v", m)
	}
	if e, ok := m.Requires.Get("kb_read"); !ok || e.Pos.Line != 13 || e.Pos.File != "m.toml" ||
		len(m.Requires.Entries) != 2 {
		t.Errorf("requires %+v", m.Requires)
	}
	if e, ok := m.Limits.Get("wall_time_ms"); !ok || e.Value.Int != 1000 {
		t.Errorf("limits %+v", m.Limits)
	}
	if p := m.Params["notes"]; p.Kind != "dir" || p.Description != "where the notes are" || p.Pos.Line != 17 ||
		m.Params["list"].Kind != "file" {
		t.Errorf("params %+v", m.Params)
	}
	names := []string{}
	for _, f := range m.Files() {
		names = append(names, f.Path)
	}
	if strings.Join(names, " ") != "bin/a.wasm caps/mine.caps a.bin b.bin" {
		t.Errorf("files %v", names)
	}
	if m.Input != InputJSON || parse(t, agentHead+entryLine+"[input]\ntype = \"bytes\"\n").Input != InputBytes {
		t.Errorf("input %q", m.Input)
	}
	empty := parse(t, agentHead+entryLine)
	if empty.Requires != nil || empty.Limits != nil || empty.Policy != nil || empty.Params != nil ||
		empty.Schemas != nil || empty.Build != nil {
		t.Errorf("%+v", empty)
	}
}

// Everything that is wrong, where it stands, and what to write.
//
//rlp:holds R4 R11 D7
func TestRefusedManifests(t *testing.T) {
	good := agentHead + entryLine
	agent := func(line string) string { return strings.Replace(good, `name = "writer"`, line, 1) }
	for _, c := range []struct{ text, want string }{
		{"", "m.toml:1:1: the table [agent] is missing (begin with [agent]"},
		{"[agent]\n" + entryLine, "m.toml:1:2: [agent] has no name (write name = \"writer\")\nm.toml:1:2: [agent] has no kind"},
		{agentHead, `m.toml:1:2: the manifest names no entry_wasm (write entry_wasm = { path`},
		{agent(`name = "../../etc/cron.d/x"`), `m.toml:2:8: agent id "../../etc/cron.d/x" is not valid (a lower-case letter`},
		{agent(`name = "a/b"`), `2:8: agent id "a/b" is not valid`},
		{agent(`name = ""`), `2:8: agent id "" is not valid`},
		{agent(`name = "."`), `2:8: agent id "." is not valid`},
		{agent(`name = "Writer"`), `2:8: agent id "Writer" is not valid (write "writer")`},
		{agent(`name = 1`), "2:8: name must be a string, not an integer"},
		{agent("name = \"writer\"\nname = \"other\""), "3:1: the key \"name\" is there already"},
		{
			agent("name = \"writer\"\nName = \"other\""),
			`3:1: unknown key "Name" (keys are matched to the letter: write "name")`,
		},
		{agent("name = \"writer\"\nnot_after = 2020-01-01T00:00:00Z"), `3:1: unknown key "not_after"`},
		{agent("name = \"writer\"\ndescripton = \"\""), `3:1: unknown key "descripton" (did you mean "description"?)`},
		{agent("name = \"writer\"\ndescription = \"a\u202eb\""), "3:15: description contains a character that turns"},
		{agent("name = \"writer\"\ndescription = \"\\u001b[2J\""), "control character U+001B"},
		{agent("name = \"writer\"\ndescription = \"" + strings.Repeat("x", 4097) + "\""), "3:15: description has 4097 bytes"},
		{strings.Replace(good, "0.1.0", "0 1", 1), `3:11: version "0 1" is not 1 to 64`},
		{strings.Replace(good, `"0.1.0"`, "1.0", 1), "3:11: version must be a string, not a decimal number"},
		{
			strings.Replace(good, "wasip1", "wasip2", 1),
			`4:8: kind "wasm32-wasip2" is not supported (write kind = "wasm32-wasip1" or "program")`,
		},
		{good + "[Caps]\n", `6:2: unknown key "Caps"`},
		{good + "[capabilities]\nexec = true\n", `6:2: unknown key "capabilities"`},
		{good + "[agent]\n", "6:"},
		{good + "[entry_wasm]\npath = \"b.wasm\"\n", "6:2: entry_wasm is there twice (keep the one in [agent])"},
		{agentHead + "entry_wasm = \"a.wasm\"\n", "5:14: entry_wasm must be a table, not a string"},
		{agentHead + "entry_wasm = {}\n", "5:14: the key \"path\" is missing (write entry_wasm"},
		{agentHead + "entry_wasm = { path = \"../x\" }\n", `5:23: "../x": the name has the component ".."`},
		{agentHead + "entry_wasm = { path = \"/bin/sh\" }\n", `5:23: "/bin/sh": the name is an absolute path`},
		{agentHead + "entry_wasm = { path = \"a\\\\b\" }\n", `5:23: "a\\b": the name contains a backslash`},
		{agentHead + "entry_wasm = { path = \"./a\" }\n", `5:23: "./a": the name has the component "."`},
		{agentHead + "entry_wasm = { path = \"\" }\n", `5:23: "": an entry has no name`},
		{agentHead + "entry_wasm = { path = \"manifest.toml\" }\n", "5:23: manifest.toml cannot be listed"},
		{agentHead + "entry_wasm = { path = \"a\", sha256 = \"12\" }\n", "5:37: sha256 is not 64 hexadecimal digits"},
		{agentHead + "entry_wasm = { path = \"a\", md5 = \"12\" }\n", `5:28: unknown key "md5"`},
		{good + "[caps]\nfile = \"../policy.caps\"\n", `7:8: "../policy.caps": the name has the component ".."`},
		{good + "[caps]\nfile = \"/etc/policy.caps\"\n", `7:8: "/etc/policy.caps": the name is an absolute path`},
		{good + "[caps]\n", `6:2: the key "file" is missing (write file = "policy.caps")`},
		{good + "[caps]\nfile = [\"policy.caps\"]\n", "7:8: file must be a string, not an array"},
		{good + "caps = true\n", "unknown key \"caps\""},
		{entryLine + "requires = true\n" + agentHead, "2:12: requires must be a table, not a boolean"},
		{good + "[params]\nNotes = { kind = \"dir\" }\n", `7:1: "Notes" is not the name of a param`},
		{good + "[params]\nnotes = \"dir\"\n", "7:9: params.notes must be a table, not a string"},
		{good + "[params]\nnotes = {}\n", `the key "kind" is missing`},
		{good + "[params]\nnotes = { kind = \"url\" }\n", `7:18: there is no kind of param "url"`},
		{good + "[params]\nnotes = { kind = \"dir\", default = \"/\" }\n", `7:25: unknown key "default"`},
		{good + "[artifacts.tools]\n", `6:12: the key "path" is missing (write path = "tools.json")`},
		{good + "[artifacts.tools]\npath = \"../t\"\n", `7:8: "../t"`},
		{good + "[artifacts.tools]\npath = \"t\"\nversion = \"1\"\n", "8:11: version must be an integer, not a string"},
		{good + "[schemas]\nwith = 1\n", "7:8: schemas.with must be a table, not an integer"},
		{good + "[schemas.with]\nminimum = nan\n", `6:10: the schema "with" cannot be written as JSON`},
		{good + "[input]\n", `6:2: the key "type" is missing`},
		{good + "[input]\ntype = 1\n", "7:8: type must be a string, not an integer"},
		{good + "[input]\ntype = \"xml\"\n", `7:8: input.type: there is no type of input "xml" (write "json", "text" or "bytes")`},
		{good + "[input]\ntype = \"text\"\nmax = 1\n", `8:1: unknown key "max"`},
		{
			good + "[input]\ntype = \"text\"\n[schemas.with]\ntype = \"object\"\n",
			`7:8: input.type is "text", and the schema [schemas.with] is one of JSON (write type = "json", or leave`,
		},
		{good + "[ports]\nin = \"x\"\n", "7:6: in must be an array, not a string"},
		{good + "[ports]\nin = [1]\n", "in[0] must be a string, not an integer"},
		{good + "[build]\n", `6:2: the key "output" is missing (write output = "agent.wasm"`},
		{good + "[build]\noutput = \"/tmp/a.wasm\"\n", `7:10: "/tmp/a.wasm": the name is an absolute path`},
		{good + "[build]\noutput = \"a\"\ncommand = \"make\"\n", "8:11: command must be an array, not a string"},
		{
			good + "[build]\noutput = \"a\"\ncommand = []\n",
			`8:11: [build] command names no program (write command = ["make"]`,
		},
		{good + "[build]\noutput = \"a\"\nshell = true\n", `8:1: unknown key "shell"`},
		{"\xef\xbb\xbf" + good, "byte order mark"},
		{good + "x", "6:"},
		{strings.Repeat("#", MaxManifest+1), "at most 1048576 are read"},
	} {
		m, err := ParseManifest("m.toml", []byte(c.text))
		var e *Error
		switch {
		case err == nil || m != nil:
			t.Errorf("%.200q was accepted, want %s", c.text, c.want)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%.200q: %v\nwant %s", c.text, err, c.want)
		case !errors.As(err, &e) || e.File != "m.toml" || e.Code != "manifest" || !errors.Is(err, ErrInvalid):
			t.Errorf("%.200q: %v is no refusal with a place", c.text, err)
		}
	}
	parse(t, good)
}

// Every error is reported, not the first alone.
func TestAllErrors(t *testing.T) {
	_, err := ParseManifest("m.toml",
		[]byte("[agent]\nname = \"X\"\nkind = \"y\"\nentry_wasm = { path = \"/\" }\n[caps]\nfile = 1\nfoo = 2\n"))
	if n := len(strings.Split(err.Error(), "\n")); n != 5 {
		t.Errorf("%d errors, want 5:\n%v", n, err)
	}
}

// A manifest that is accepted names files in the bundle only and an agent whose
// id is one; nothing makes the parser panic.
func FuzzManifest(f *testing.F) {
	text, err := os.ReadFile("testdata/runloop/writer/manifest.toml")
	must(f, err)
	f.Add(string(text))
	f.Add(agentHead + entryLine + "[params]\nnotes = { kind = \"dir\" }\n[caps]\nfile = 'p'\n")
	f.Add(manifestFor(testWasm, testPolicy))
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseManifest("m.toml", []byte(text))
		if err != nil {
			var e *Error
			if m != nil || !errors.As(err, &e) {
				t.Fatalf("%v", err)
			}
			return
		}
		tree := map[string][]byte{}
		for i, file := range m.Files() {
			if checkName(file.Path) != "" || file.Pos.Line == 0 {
				t.Fatalf("file %+v", file)
			}
			tree[file.Path] = []byte{byte(i)}
		}
		if m.Agent.IsZero() {
			t.Fatal("no agent")
		}
		if a, ok := m.Artifacts[toolsArtifact]; ok {
			if a.Version != 0 && a.Version != 1 {
				return // of tools.json, which does not verify
			}
			tree[a.Path] = []byte(noTools)
		}
		checkFilled(t, text, tree)
	})
}

// checkFilled says that filling in digests gives a manifest with which the tree
// verifies, that keeps all else, and that filling again leaves as it is.
func checkFilled(t *testing.T, text string, files map[string][]byte) {
	t.Helper()
	filled, err := fillDigests("m.toml", []byte(text), files, "")
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%v", err)
		}
		return // a form of key that digests are not filled into, and said so
	}
	if again, err := fillDigests("m.toml", filled, files, ""); err != nil || string(again) != string(filled) {
		t.Fatalf("filling again: %v\n%s\n%s", err, filled, again)
	}
	all := map[string][]byte{ManifestName: filled}
	for name, data := range files {
		all[name] = data
	}
	b, err := verify(all, within("m"))
	if err != nil {
		t.Fatalf("what was filled in does not verify: %v\n%s", err, filled)
	}
	for _, f := range b.Findings {
		if f.Code == "digest_missing" {
			t.Fatalf("%v\n%s", f, filled)
		}
	}
	old, err := tomlfile.ParseMax("m.toml", []byte(text), MaxManifest)
	must(t, err)
	now, err := tomlfile.ParseMax("m.toml", filled, MaxManifest)
	must(t, err)
	got, want := withoutDigests(now.Plain()), withoutDigests(old.Plain())
	if _, ok := want["caps"]; !ok {
		delete(got, "caps") // added for a policy that lies there
	}
	if !sameJSON(got, want) {
		t.Fatalf("filling in changed more than digests\n%s\n%s", text, filled)
	}
}

func withoutDigests(m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		if sub, ok := v.(map[string]any); ok {
			v = withoutDigests(sub)
		}
		if k != "sha256" && k != "blake3" {
			out[k] = v
		}
	}
	return out
}

// sameJSON compares without minding NaN.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX != nil && errY != nil || string(x) == string(y)
}

func TestTextForms(t *testing.T) {
	version := regexp.MustCompile(`\A[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}\z`)
	param := regexp.MustCompile(`\A[a-z][a-z0-9_]{0,63}\z`)
	texts := []string{"", strings.Repeat("a", 64), strings.Repeat("a", 65), "1.0", "a_b", "a-b", "A", "é", "a\n"}
	for a := range 256 {
		texts = append(texts, string([]byte{byte(a)}), string([]byte{'a', byte(a)}), string([]byte{'a', byte(a), 'b'}))
	}
	for _, s := range texts {
		if isVersion(s) != version.MatchString(s) || isParam(s) != param.MatchString(s) {
			t.Errorf("%q: version %v, param %v", s, isVersion(s), isParam(s))
		}
	}
	for s, want := range map[string]bool{
		"": true, "  \t": true, "a.": true, " a . b-1_ . ": true, "a": false, "{ ": false, "a.b": false, "x = { a.": false,
		"\"a\".": false,
	} {
		if isKeyStart(s) != want {
			t.Errorf("isKeyStart(%q) = %v", s, !want)
		}
	}
}

func TestErrorText(t *testing.T) {
	check := func(file, message string, line, column uint8) bool {
		e := &Error{File: file, Line: int(line), Column: int(column), Message: message}
		f := Finding{Path: file, Line: int(line), Column: int(column), Severity: Warning, Message: message}
		return strings.HasSuffix(e.Error(), ": "+message) && strings.HasPrefix(f.String(), file) && errors.Is(e, ErrInvalid)
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
	e := &Error{File: "b/m.toml", Line: 3, Column: 9, Message: "no", Hint: "yes"}
	if e.Error() != "b/m.toml:3:9: no (yes)" {
		t.Error(e)
	}
}
