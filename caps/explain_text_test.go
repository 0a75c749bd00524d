package caps_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"runloop.dev/rlp/caps"
)

var update = flag.Bool("update", false, "rewrite what is wanted in testdata")

// What each layer changed, the set that is left, and every vote about a request
// are exactly those that stand behind the layers in the archives of testdata,
// and the oracle decides the same.
//
// A line of a case is "base", "allow", "deny", "spare", "implied" or "bound"
// with a capability (or a family), "layer" with a name, or "ask". Its place is
// its line; "allow@7:2:file" gives another one, and "allow@0" none.
func TestWhatIsTold(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 2 {
		t.Fatalf("archives %q, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { testTold(t, file) })
	}
}

func testTold(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []txtar.File
	for _, f := range archive.Files {
		if f.Name != "told" {
			cases = append(cases, f, txtar.File{Name: "told", Data: []byte(told(t, f.Name, string(f.Data)))})
		}
	}
	got, want := txtar.Format(&txtar.Archive{Comment: archive.Comment, Files: cases}), txtar.Format(archive)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Fatalf("line %d is\n%s\nwant\n%s", i+1, strings.Join(g[min(i, len(g)):min(i+3, len(g))], "\n"),
				strings.Join(w[min(i, len(w)):min(i+3, len(w))], "\n"))
		}
	}
}

// told is all that comes of one case.
func told(t *testing.T, name, lines string) string {
	var o oracle
	var asks []string
	for i, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		what, word, _ := strings.Cut(line, " ")
		what, at, _ := strings.Cut(what, "@")
		pos := place(i+1, at)
		var l *caps.Layer
		if n := len(o.layers); n > 0 {
			l = o.layers[n-1]
		}
		switch what {
		case "base":
			o.base = append(o.base, written(t, word, pos)...)
		case "layer":
			o.layers = append(o.layers, &caps.Layer{Name: word, Sum: word == "sum"})
		case "bound":
			family, modes, _ := strings.Cut(word, " ")
			f := caps.Tool
			for f.String() != family && f > 0 {
				f--
			}
			if f.String() != family {
				t.Fatalf("%s: %q", name, line)
			}
			b := caps.Bound{Family: f, Modes: caps.AllModes(f), Pos: pos}
			if n, err := strconv.Atoi(modes); err == nil {
				b.Modes = caps.ModeSet(n)
			}
			l.Bounds = append(l.Bounds, b)
		case "allow", "implied":
			list := written(t, word, pos)
			for i := range list {
				list[i].Implied = what == "implied"
			}
			l.Allow = append(l.Allow, list...)
		case "deny":
			l.Deny = append(l.Deny, denied(t, word, pos)...)
		case "spare":
			l.Spare = append(l.Spare, denied(t, word, pos)...)
		case "ask":
			asks = append(asks, word)
		default:
			t.Fatalf("%s: %q", name, line)
		}
	}
	var b strings.Builder
	s := mustBase(t, slices.Clone(o.base), caps.Limits{})
	for _, l := range o.layers {
		next, changes, err := s.Narrow(l)
		for _, c := range changes {
			fmt.Fprintf(&b, "%s %s %s at %s\n", c.Layer, c.Kind, c.Grant, c.Source)
		}
		if err != nil {
			fmt.Fprintf(&b, "error %v\n", err)
		}
		s = next
	}
	fmt.Fprintln(&b, s)
	for _, ask := range asks {
		list, err := caps.ParseRequest(ask)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			e := s.Explain(r)
			if r.Name != "*" && e.Allow != o.allows(r) {
				t.Errorf("%s: %s is %v, and the oracle says otherwise", name, r, e.Allow)
			}
			fmt.Fprintf(&b, "%s %v %s layer %d scope %q", e.Asked, e.Allow, e.Code, e.Decision.Layer, e.Scope)
			for _, v := range e.Votes {
				fmt.Fprintf(&b, "; %s %v %s", v.Layer, v.Allow, v.Pos)
			}
			fmt.Fprintf(&b, "; tree %v\n", s.CheckTree(r).Allow)
		}
	}
	return b.String()
}

func place(line int, at string) caps.Pos {
	p := caps.Pos{File: "f", Line: line, Column: 1}
	if at == "" {
		return p
	}
	list := strings.Split(at, ":")
	if list[0] == "0" {
		return caps.Pos{}
	}
	p.Line, _ = strconv.Atoi(list[0])
	if len(list) > 1 {
		p.Column, _ = strconv.Atoi(list[1])
	}
	if len(list) > 2 {
		p.File = list[2]
	}
	return p
}

// written is a capability as an entry; "tool X" names a host call.
func written(t *testing.T, word string, pos caps.Pos) []caps.Entry {
	if scope, ok := strings.CutPrefix(word, "tool "); ok {
		return at([]caps.Entry{toolEntry(scope)}, pos)
	}
	return at(entries(t, word), pos)
}

func denied(t *testing.T, word string, pos caps.Pos) []caps.Entry {
	if strings.HasPrefix(word, "tool ") {
		return written(t, word, pos)
	}
	return at(denies(t, word), pos)
}

func at(list []caps.Entry, pos caps.Pos) []caps.Entry {
	for i := range list {
		list[i].Pos = pos
	}
	return list
}
