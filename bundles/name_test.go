package bundles

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

func TestCheckName(t *testing.T) {
	long := strings.Repeat("a", MaxName)
	for _, name := range []string{
		"a", "manifest.toml", "bin/x.wasm", "SIGNATURES/manifest.sig", "..a", "a..b", ".hidden", "a b", "-", "caf\u00e9",
		"日本語.json",
		"console", "com", "com10", "lpt", "nully.txt", "a/con1", long, strings.Repeat("a/", MaxDepth-1) + "a",
	} {
		if wrong := checkName(name); wrong != "" {
			t.Errorf("checkName(%q): %s", name, wrong)
		}
	}
	for name, why := range map[string]string{
		"": "no name", "/a": "absolute", "/": "absolute", "a/": "empty component", "a//b": "empty component",
		".":  "component \".\"",
		"..": "component \"..\"", "./a": "component", "a/../b": "component", "a/.": "component", "a\\b": "backslash",
		"C:a":    "colon",
		"a\x00b": "control", "a\tb": "control", "a\x7f": "control", "a\u0085": "control", "a\u202eb": "reading direction",
		"a\u2066b": "reading direction", "a\u200eb": "reading direction", "a\u200bb": "invisible", "a\u00adb": "invisible",
		"a\ufeff": "invisible", "a\u00a0b": "invisible", "a\u2028b": "invisible", "\ue000": "invisible", "cafe\u0301": "NFC",
		"\u212b": "NFC",
		"a.":     "dot or a blank", "a ": "dot or a blank", "a./b": "dot or a blank", "a /b": "dot or a blank",
		"...": "dot or a blank",
		"con": "device", "CON": "device", "Con.txt": "device", "con .txt": "device", "a/nul": "device", "aux/b": "device",
		"prn.": "dot",
		"COM1": "device", "lpt9.log": "device", "com¹": "device", "LPT³.x": "device", "conin$": "device", "CLOCK$": "device",
		"\xff": "UTF-8", "a\xc0\xaf": "UTF-8", long + "a": "256 bytes", strings.Repeat("a/", MaxDepth) + "a": "65 folders",
	} {
		if wrong := checkName(name); !strings.Contains(wrong, why) {
			t.Errorf("checkName(%q) = %q, want something about %q", name, wrong, why)
		}
	}
}

func TestNamesOfOneFile(t *testing.T) {
	type entry struct {
		name string
		dir  bool
	}
	for _, c := range []struct {
		first, second entry
		wrong         string
	}{
		{entry{"a", false}, entry{"b", false}, ""},
		{entry{"a", true}, entry{"a/b", false}, ""},
		{entry{"a/b", false}, entry{"a", true}, ""},
		{entry{"a/b", false}, entry{"a/c", false}, ""},
		{entry{"a", false}, entry{"a", false}, "twice"},
		{entry{"a", true}, entry{"a", true}, "twice"},
		{entry{"a", false}, entry{"a", true}, "both"},
		{entry{"a", false}, entry{"a/b", false}, "both"},
		{entry{"a/b", false}, entry{"a", false}, "both"},
		{entry{"a", false}, entry{"A", false}, "one name"},
		{entry{"a/x", false}, entry{"A/y", false}, "one name"},
		{entry{"a", false}, entry{"A/y", false}, "one name"},
		{entry{"\u00e9", false}, entry{"\u00c9", false}, "one name"},
		{entry{"stra\u00dfe", false}, entry{"STRASSE", false}, "one name"},
		{entry{"\ufb01x", false}, entry{"fix", false}, "one name"},
		{entry{"\u212a", false}, entry{"k", false}, "one name"},
		{entry{"\u03c3", false}, entry{"\u03c2", false}, "one name"},
		{entry{"i", false}, entry{"\u0131", false}, ""},
	} {
		var s nameSet
		if wrong := s.add(c.first.name, c.first.dir); wrong != "" {
			t.Fatalf("%v: %s", c.first, wrong)
		}
		got := s.add(c.second.name, c.second.dir)
		if (c.wrong == "") != (got == "") || !strings.Contains(got, c.wrong) {
			t.Errorf("%v after %v: %q, want %q", c.second, c.first, got, c.wrong)
		}
	}
}

// Whatever passes stays beneath a folder on every system, and folding is a
// projection that neither case nor Unicode form gets past.
func FuzzName(f *testing.F) {
	for _, s := range []string{"a/b", "../x", "CON", "caf\u00e9", "\ufb01", "a.", "a\\b", "/a", "\u1e9e", "\u0345"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if checkName(name) != "" {
			return
		}
		if !filepath.IsLocal(name) || filepath.ToSlash(filepath.Clean(name)) != name || len(name) > MaxName {
			t.Fatalf("%q is not a clean local path", name)
		}
		if strings.ContainsAny(name, "\\:\x00\n\x1b\u202e") || !norm.NFC.IsNormalString(name) {
			t.Fatalf("%q has a character that no name has", name)
		}
		forms := []string{fold(name), norm.NFD.String(name), norm.NFKC.String(name)}
		for _, form := range []string{strings.ToUpper(name), strings.ToLower(name)} {
			if strings.EqualFold(form, name) { // the case of a few letters is not undone, such as dotless i
				forms = append(forms, form)
			}
		}
		for _, form := range forms {
			if fold(form) != fold(name) {
				t.Fatalf("%q and %q fold to %q and %q", name, form, fold(name), fold(form))
			}
		}
	})
}
