package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// words are what a bundle could say to be taken for another's, or to have its
// things kept or bounded elsewhere: each in the place of a marker of [bundleOf].
var words = []struct{ marker, text string }{
	{"#top", `tenant = "other"`},
	{"#top", `run_id = "0190b1d2-7c4e-7a55-8f00-000000000001"`},
	{"#top", `cache_key = "x"`},
	{"#top", "[security]\npath_profile = \"relaxed\""},
	{"#top", "[log]\npath = \"/tmp/x\""},
	{"#top", "[cache]\ndir = \"/tmp/x\""},
	{"#agent", `tenant = "other"`},
	{"#agent", `agent_id = "other"`},
	{"#agent", `workdir = "/tmp"`},
	{`name = "plain"`, `name = "tenants/other/plain"`},
	{`name = "plain"`, `name = "../plain"`},
	{`name = "plain"`, `name = "_default"`},
	{`name = "plain"`, `name = ""`},
	{`path = "a.wasm"`, `path = "../own/a.wasm"`},
	{`path = "a.wasm"`, `path = "/etc/passwd"`},
	{`file = "policy.caps"`, `file = "../own/policy.caps"`},
	{"#policy", `tenant = "other"`},
	{"#policy", "[limits]\nwall_time_ms = -1"},
	{"#policy", "[limits]\nceiling = 5"},
	{"#policy", "[config]\nhome = \"/tmp\""},
	{"#caps", `tenant = ["other"]`},
	{"#caps", `log = ["/tmp/x"]`},
	{"#caps", `cache = ["x"]`},
}

// bundleOf writes a bundle with text in the place of marker.
func (h *house) bundleOf(dir, marker, text string) {
	manifest := `#top
[agent]
name = "plain"
version = "1.0.0"
kind = "wasm32-wasip1"
entry_wasm = { path = "a.wasm" }
#agent
[caps]
file = "policy.caps"
`
	policy := "#policy\n[capabilities]\nkb_read = [\"notes\"]\n#caps\n"
	if strings.HasPrefix(text, "[") { // a table ends those before it
		policy, manifest = policy+"#policy\n", strings.TrimPrefix(manifest, "#top\n")+"#top\n"
		policy = strings.TrimPrefix(policy, "#policy\n")
	}
	h.write(filepath.Join(dir, "manifest.toml"), strings.Replace(manifest, marker, text, 1))
	h.write(filepath.Join(dir, "policy.caps"), strings.Replace(policy, marker, text, 1))
	h.write(filepath.Join(dir, "a.wasm"), emptyModule)
}

// Nothing read from a bundle names a tenant, a key of the cache, a path of the
// log or a limit above the operator's: such a word refuses the launch, and
// nothing is made for what it says.
//
//rlp:holds K59
func TestABundleNamesNothingOfTheHost(t *testing.T) {
	h := &house{t: t, dir: t.TempDir(), out: t.TempDir()}
	h.bundleOf(filepath.Join(h.out, "own"), "#none", "")
	if status, text := h.in("acme", "", "launch", filepath.Join(h.out, "own")); status != 0 {
		t.Fatalf("control: %d %s", status, text)
	}
	before := h.places()
	for _, w := range words {
		dir := filepath.Join(h.out, "bundle")
		h.bundleOf(dir, w.marker, w.text)
		if status, text := h.in("acme", "", "launch", dir); status != 65 || !strings.Contains(text, "bundle") {
			t.Errorf("%s: %s: %d %s", w.marker, w.text, status, text)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	if after := h.places(); after != before {
		t.Errorf("there is something new:\n%s\nwas\n%s", after, before)
	}
}

// places are the names of all that lies in the home.
func (h *house) places() string {
	var names []string
	err := filepath.WalkDir(h.dir, func(p string, _ fs.DirEntry, err error) error {
		names = append(names, p)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.Join(names, "\n")
}
