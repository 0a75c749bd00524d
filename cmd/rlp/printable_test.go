package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	shown "runloop.dev/rlp/internal/base/printable"
)

// Names that an agent or a bundle chose are seen as what they are, whichever
// command prints them.
func TestNamesAreSeenAsTheyAre(t *testing.T) {
	t.Parallel()
	const name = "a\u200bb\u200e\u061c\U000e0041\u00ad\u202e\x1b[2J\u3164z"
	probe := buildProbe(t)
	wasm, err := os.ReadFile(probe)
	if err != nil {
		t.Fatal(err)
	}
	h, bundle, out := t.TempDir(), t.TempDir(), t.TempDir()
	if err := copyCache(filepath.Join(h, ".runloop"), compiledProbe(t, probe)); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hidden := filepath.Join(out, strings.ReplaceAll(name, "\x1b[2J", "")) // which no policy may name
	write(filepath.Join(bundle, "manifest.toml"),
		"[agent]\nname = \"odd\"\nkind = \"wasm32-wasip1\"\nversion = \"1\"\nentry_wasm = { path = \"a.wasm\" }\n")
	write(filepath.Join(bundle, "a.wasm"), string(wasm))
	write(filepath.Join(bundle, "policy.caps"), "[capabilities]\nfs_rw = [\""+hidden+
		"\"]\nkb_write = [\"notes\"]\nkb_read = [\"notes\"]\n")
	write(filepath.Join(hidden, "f"), "x")
	if text, err := self(t, h, "launch", bundle, "--audit-allow", "--", "write", filepath.Join(hidden, name), "x", "read",
		filepath.Join("/etc", name), "put", "notes", filepath.Base(hidden), name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	override := filepath.Join(out, "override.toml")
	write(override, "[capabilities]\nfs = []\nfs_rw = [\"/else"+strings.TrimPrefix(hidden, out)+"\"]\n")
	for _, c := range []struct {
		args  []string
		shows bool // the name
	}{
		{[]string{"audit", "list"}, true},
		{[]string{"caps", "show", bundle}, true},
		{[]string{"caps", "diff", bundle, "--override", override}, true},
		{[]string{"caps", "lint", bundle, override}, true},
		{[]string{"caps", "explain", bundle, "fs:read:" + hidden}, true},
		{[]string{"caps", "suggest", bundle}, true},
		{[]string{"caps", "whatif", "--override", override}, true},
		{[]string{"kb", "list", "notes"}, true},
		{[]string{"kb", "why", "notes", filepath.Base(hidden)}, true},
		{[]string{"agent", "inspect", bundle}, false},
		{[]string{"launch", bundle, "--dry-run"}, true},
	} {
		text, _ := self(t, h, c.args...).CombinedOutput() // what is found wrong has a status
		what := strings.Join(c.args[:2], " ")
		for _, r := range string(text) {
			if r != '\n' && shown.Hidden(r) || r == utf8.RuneError {
				t.Errorf("rlp %s prints %U:\n%q", what, r, text)
				break
			}
		}
		if c.shows != strings.Contains(strings.ToLower(string(text)), `a\u200bb`) {
			t.Errorf("control: rlp %s shows the name: %v\n%s", what, !c.shows, text)
		}
	}
}
