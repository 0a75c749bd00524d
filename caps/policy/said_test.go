package policy_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

var update = flag.Bool("update", false, "rewrite what is wanted in testdata")

// Of each document in testdata/said, every finding with its place, words and
// hint, and all that is read of it, are exactly those that stand behind it.
//
// An archive alternates documents, under the name of their kind, and what is
// said. Two names may have a word behind them: "machine" looks at paths,
// "bare" has the zero options.
func TestWhatIsSaidAndRead(t *testing.T) {
	files, err := filepath.Glob("testdata/said/*.txtar")
	if err != nil || len(files) < 8 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var docs []txtar.File
		for _, f := range archive.Files {
			if f.Name != "said" {
				docs = append(docs, f, txtar.File{Name: "said", Data: []byte(said(t, f.Name, f.Data))})
			}
		}
		got := txtar.Format(&txtar.Archive{Comment: archive.Comment, Files: docs})
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if want := txtar.Format(archive); string(got) != string(want) {
			t.Errorf("%s: %s\n(go test ./caps/policy -update writes it anew)", file, firstDifference(string(got), string(want)))
		}
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d is\n%s\nwant\n%s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// machine has folders, a file, a link and a folder that may not be looked at.
func machine() policy.Options {
	opt := options
	opt.Domains = []string{"zoo", "custom", "notes"}
	opt.Stat = func(path string) (fs.FileInfo, error) {
		if path == "/locked" {
			return nil, errors.New("permission denied")
		}
		return files{"/dir/", "/dir/file", "/link/", "/"}.stat(path)
	}
	opt.Resolve = func(path string) (string, string) {
		if path == "/link" {
			return "/dir", "/link"
		}
		return path, ""
	}
	return opt
}

// said reads a document of a kind and writes down all that comes of it.
func said(t *testing.T, name string, data []byte) string {
	t.Helper()
	kind, how, _ := strings.Cut(name, " ")
	opt := map[string]policy.Options{"": options, "machine": machine(), "bare": {}}[how]
	const file = "writer.toml"
	var b strings.Builder
	var findings []policy.Finding
	var read *policy.Base
	switch kind {
	case "policy":
		read, findings = policy.ParseBase(file, data, opt)
	case "template":
		read, findings = policy.ParseTemplate(file, data, opt)
	case "requires", "requires-0.1":
		root := parse(t, file, string(data))
		schema := map[string]string{"requires": "0.2", "requires-0.1": "0.1"}[kind]
		read, findings = policy.ParseRequires(table(root, "requires"), table(root, "limits"), schema, opt)
	case "limits":
		var l caps.Limits
		l, findings = policy.ParseLimits(table(parse(t, file, string(data)), "limits"))
		writeLimits(&b, l)
	case "params":
		var params []policy.Param
		params, findings = policy.ParseParams(parse(t, file, string(data)))
		for _, p := range params {
			fmt.Fprintf(&b, "param %+v\n", p)
		}
	case "manifest":
		findings = policy.Lint(policy.KindManifest, file, data, opt)
	case "profile":
		var p *policy.Profile
		if p, findings = policy.ParseProfile("writer", file, data, opt); p != nil {
			fmt.Fprintf(&b, "about %+v from %s\n", p.About, p.Source)
			writeLayer(&b, p.Layer)
		}
	case "layer":
		var o *policy.Override
		if o, findings = policy.ParseLayer("override", file, data, opt); o != nil {
			for _, k := range slices.Sorted(maps.Keys(o.Params)) {
				fmt.Fprintf(&b, "value %s %+v\n", k, o.Params[k])
			}
			writeLayer(&b, o.Layer)
		}
	default:
		t.Fatalf("no kind %q", kind)
	}
	if read != nil {
		fmt.Fprintf(&b, "schema %s\n", read.Schema)
		writeEntries(&b, "grant", read.Entries)
		writeLeases(&b, read.Leases)
		for _, r := range read.Routes {
			fmt.Fprintf(&b, "route %s %s\n", r.Pos, &r)
		}
		for _, p := range read.Placeholders {
			fmt.Fprintf(&b, "placeholder %+v\n", p)
		}
		writeLimits(&b, read.Limits)
	}
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %s\n", f, f.Field)
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

func writeEntries(b *strings.Builder, what string, entries []caps.Entry) {
	for _, e := range entries {
		fmt.Fprintf(b, "%s %s at %s%s\n", what, e.Grant, e.Pos, map[bool]string{true: ", implied"}[e.Implied])
	}
}

func writeLeases(b *strings.Builder, leases []caps.Lease) {
	for _, l := range leases {
		fmt.Fprintf(b, "lease %s at %s until %d, %d uses\n", l.Grant, l.Pos, l.Expires, l.MaxUses)
	}
}

func writeLimits(b *strings.Builder, limits caps.Limits) {
	for l := range caps.NumLimits {
		if n, ok := limits.Get(l); ok {
			fmt.Fprintf(b, "limit %s %d\n", l, n)
		}
	}
}

func writeLayer(b *strings.Builder, l *caps.Layer) {
	fmt.Fprintf(b, "layer %s\n", l.Name)
	for _, x := range l.Bounds {
		fmt.Fprintf(b, "bound %s %b at %s\n", x.Family, x.Modes, x.Pos)
	}
	writeEntries(b, "allow", l.Allow)
	writeEntries(b, "deny", l.Deny)
	writeLeases(b, l.Leases)
	writeLimits(b, l.Limits)
	for c := range caps.NumConstraints {
		if n, ok := l.Constraints.Get(c); ok {
			table, key := c.Key()
			fmt.Fprintf(b, "constraint %s.%s %d\n", table, key, n)
		}
	}
}

// The JSON Schema of each kind of document is the one that stands in
// testdata/schema: what changes it is seen by whoever reviews the change.
func TestSchemasToTheLetter(t *testing.T) {
	for _, kind := range []policy.Kind{
		policy.KindPolicy, policy.KindManifest, policy.KindOverride, policy.KindProfile,
		policy.KindTemplate, policy.KindGrant,
	} {
		file := filepath.Join("testdata", "schema", string(kind)+".json")
		got := policy.Schema(kind)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %v, %s", kind, err, firstDifference(string(got), string(want)))
		}
	}
}
