package policy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"runloop.dev/rlp/caps/policy"
)

// Each preset is a base that this program reads without a finding that refuses it, says
// what it is, and gives each host, variable and program its reason.
func TestPresetsGiveReasons(t *testing.T) {
	names := policy.BuiltinPresets()
	if len(names) < 7 {
		t.Fatal(names)
	}
	entry := regexp.MustCompile(`^\s+".*",|^(exec|time|model)\b|^\w+ = .*\]`)
	for _, name := range names {
		text, source, err := policy.PresetText(name, filepath.Join(t.TempDir(), "none.toml"), policy.Options{})
		if err != nil || source != policy.Builtin || policy.PresetAbout(text) == "" {
			t.Fatalf("%s: %v %q", name, err, source)
		}
		base, findings := policy.ParseBase(name+".toml", text, policy.Options{Home: "/home/user"})
		if base == nil || policy.HasErrors(findings) || len(base.Entries) == 0 {
			t.Errorf("%s: %v", name, findings)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if _, why, _ := strings.Cut(line, "# "); entry.MatchString(line) && len(why) < 8 {
				t.Errorf("%s:%d: no reason: %s", name, i+1, line)
			}
		}
	}
}

// A file of the home takes the place of a built-in preset; one that cannot be read is
// an error, and no name leads out of the folder.
func TestPresetsAreReplaceable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.toml")
	if err := os.WriteFile(file, []byte("# mine\n[capabilities]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, source, err := policy.PresetText("node", file, policy.Options{}); err != nil || source != file ||
		policy.PresetAbout(text) != "mine" {
		t.Errorf("%q %s %v", text, source, err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if text, _, err := policy.PresetText("node", file, policy.Options{}); err == nil {
		t.Errorf("a file that everybody may write: %q", text)
	}
	if text, _, err := policy.PresetText("nobody", file+"x", policy.Options{}); err != nil || text != nil {
		t.Errorf("%q %v", text, err)
	}
	for _, name := range []string{"../node", "", "Node", "a/b"} {
		if text, _, err := policy.PresetText(name, file+"x", policy.Options{}); err == nil {
			t.Errorf("%q: %q", name, text)
		}
	}
}
