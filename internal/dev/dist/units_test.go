package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// units are the two, as they are installed.
func units(t *testing.T) map[string]string {
	t.Helper()
	r, _ := made(t)
	root, found := t.TempDir(), make(map[string]string)
	if err := install(r, "linux/amd64", root, "/usr"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"system", "user"} {
		text, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd", name, "rlp.service"))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(text)
	}
	return found
}

var unitLine = regexp.MustCompile(`^(#.*|\[(Unit|Service|Install)\]|[A-Z][A-Za-z]*=.*|)$`)

// malformed are the lines of a unit that are none.
func malformed(text string) []string {
	var bad []string
	for line := range strings.Lines(text) {
		if !unitLine.MatchString(strings.TrimSuffix(line, "\n")) {
			bad = append(bad, line)
		}
	}
	return bad
}

func TestUnitsAreWritten(t *testing.T) {
	for name, text := range units(t) {
		if bad := malformed(text); len(bad) > 0 {
			t.Errorf("%s: %q", name, bad)
		}
		if !strings.Contains(text, "\nType=notify\n") || !strings.Contains(text, "\nNoNewPrivileges=yes\n") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	if len(malformed("[Servise]\nno key\n")) != 2 {
		t.Error("control: nonsense is a unit")
	}
}

// Where systemd is, it says itself that it understands them, and that the one of the
// system leaves little open.
func TestUnitsAreUnderstood(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd is not installed: nobody else reads the units here")
		return
	}
	found := units(t)
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "rlp.service")
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "/usr/bin/rlp serve", "/bin/true")), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	verify := func(text string) string {
		out, _ := exec.Command(analyze, "verify", "--man=no", write(text)).CombinedOutput()
		return string(out)
	}
	for name, text := range found {
		if out := verify(text); strings.Contains(out, "rlp.service") {
			t.Errorf("%s: %s", name, out)
		}
	}
	if out := verify(strings.Replace(found["system"], "ProtectSystem=", "ProtectSytem=", 1)); !strings.Contains(out,
		"ProtectSytem") {
		t.Errorf("control: a misspelt line is not found: %s", out)
	}
	const tenths = "15"
	security := func(text string) ([]byte, error) {
		return exec.Command(analyze, "security", "--offline=true", "--threshold="+tenths, write(text)).CombinedOutput()
	}
	if out, err := security(found["system"]); err != nil {
		t.Errorf("it is more exposed than that: %v\n%s", err, out)
	}
	if _, err := security(found["user"]); err == nil {
		t.Error("control: a unit that confines little is as safe")
	}
}
