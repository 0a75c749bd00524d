package policy_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

const withParams = "schema = \"0.2\"\n[capabilities]\nfs = [\"{notes}\", \"{notes}/old/\", \"/fixed\"]\nfs_rw = " +
	"[\"{out}/digest\"]\n"

func parsedParams(t *testing.T, text string) (*policy.Base, []policy.Param) {
	t.Helper()
	b, f := policy.ParseBase("policy.caps", []byte(text), options)
	if b == nil {
		t.Fatal(f)
	}
	params, f := policy.ParseParams(parse(t, "manifest.toml",
		"[params]\nnotes = { kind = \"dir\", description = \"the notes\" }\nout = { kind = \"dir\", description = \"where "+
			"to write\" }\n"))
	if len(f) != 0 {
		t.Fatal(f)
	}
	return b, params
}

func values(pairs ...string) map[string]policy.Value {
	m := map[string]policy.Value{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = policy.Value{Path: pairs[i+1], Pos: caps.Pos{File: "--param"}}
	}
	return m
}

func TestResolve(t *testing.T) {
	b, params := parsedParams(t, withParams)
	for _, p := range b.Entries {
		if strings.Contains(p.Grant.Scope, "{") {
			t.Errorf("a placeholder is no grant: %v", p)
		}
	}
	r, err := b.Resolve(params, policy.Given{
		Values: values("notes", "in/../n/", "out", "~/o"), Dir: "/work",
		Home: "/home/op",
	})
	if err != nil {
		t.Fatal(err)
	}
	set, err := caps.Base(r.Entries, b.Limits)
	if err != nil {
		t.Fatal(err)
	}
	want := "fs:delete:/home/op/o/digest fs:read:/fixed fs:read:/home/op/o/digest fs:read:/work/n " +
		"fs:write:/home/op/o/digest"
	if got := strings.Join(set.Strings(), " "); got != want {
		t.Errorf("got %s", got)
	}
	if !reflect.DeepEqual(r.Params, map[string]string{"notes": "/work/n", "out": "/home/op/o"}) {
		t.Errorf("params %v", r.Params)
	}
}

// Everything that is missing is said at once, with what it is for.
func TestResolveRefuses(t *testing.T) {
	b, params := parsedParams(t, withParams)
	for _, c := range []struct {
		name    string
		given   policy.Given
		missing string
		says    []string
	}{
		{"nothing", policy.Given{}, "[notes out]", []string{
			"notes (the notes)", "--param notes=PATH", "out (where to write)",
			"--param out=PATH",
		}},
		{"one", policy.Given{Values: values("notes", "/n")}, "[out]", []string{"--param out=PATH"}},
		{
			"misspelt",
			policy.Given{Values: values("notes", "/n", "out", "/o", "nots", "/x")},
			"[]",
			[]string{`"nots"`, `"notes"`},
		},
		{
			"relative without a folder",
			policy.Given{Values: values("notes", "n", "out", "/o")},
			"[]",
			[]string{"notes", "relative"},
		},
		{"empty", policy.Given{Values: values("notes", "", "out", "/o"), Dir: "/w"}, "[]", []string{"empty"}},
		{"pattern", policy.Given{Values: values("notes", "/n/*", "out", "/o")}, "[]", []string{"glob"}},
		{"control character", policy.Given{Values: values("notes", "/n\x00", "out", "/o")}, "[]", []string{"control"}},
		{"no home", policy.Given{Values: values("notes", "~/n", "out", "/o")}, "[]", []string{"home"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := b.Resolve(params, c.given)
			var e *policy.ParamError
			if !errors.As(err, &e) || r.Entries != nil {
				t.Fatalf("%v, %v", r, err)
			}
			var names []string
			for _, p := range e.Missing {
				names = append(names, p.Name)
			}
			if fmt.Sprint(names) != c.missing {
				t.Errorf("missing %v", names)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%v does not say %s", err, s)
				}
			}
		})
	}
}

func TestUndeclared(t *testing.T) {
	b, params := parsedParams(t, "schema = \"0.2\"\n[capabilities]\nfs = [\"{note}\"]\n")
	_, err := b.Resolve(params, policy.Given{Values: values("notes", "/n", "out", "/o")})
	if err == nil || !strings.Contains(err.Error(), `policy.caps:3:7`) || !strings.Contains(err.Error(), `"notes"`) {
		t.Error(err)
	}
	if f := b.CheckPlaceholders(nil); len(f) != 1 || f[0].Code != policy.CodeParamUndecl || !strings.Contains(f[0].Hint,
		"manifest.toml") {
		t.Error(f)
	}
	for text, code := range map[string]policy.Code{
		"[params]\nnotes = \"/a\"": policy.CodeWrongType, "[params]\nN = { kind = \"dir\" }": policy.CodeBadParam,
		"[params]\nn = { kind = \"socket\" }":               policy.CodeBadParam,
		"[params]\nn = { description = \"x\" }":             policy.CodeMissing,
		"[params]\nn = { kind = \"dir\", default = \"/\" }": policy.CodeUnknownKey, "params = 1": policy.CodeWrongType,
	} {
		if _, f := policy.ParseParams(parse(t, "m", text)); len(f) != 1 || f[0].Code != code {
			t.Errorf("%q: %v", text, f)
		}
	}
}

// An override gives values as well; they are paths like any other.
func TestOverrideParams(t *testing.T) {
	o, f := policy.ParseLayer("o", "w.toml", []byte("[params]\nnotes = \"~/notes/\"\nout = \"/o/./p\"\n"), options)
	if o == nil {
		t.Fatal(f)
	}
	if o.Params["notes"].Path != "/home/op/notes" || o.Params["out"].Path != "/o/p" ||
		o.Params["out"].Pos.String() != "w.toml:3:7" {
		t.Errorf("%v", o.Params)
	}
	if len(o.Layer.Bounds)+len(o.Layer.Allow)+len(o.Layer.Deny) != 0 {
		t.Error("values of placeholders restrict nothing")
	}
}
