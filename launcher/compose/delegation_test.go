package compose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/launcher/run"
)

// However the file of a binding is broken, the floor holds, also where delegates
// without a binding inherit, and whoever wrote it is told; and a floor that cannot be read is the built-in one.
//
//rlp:holds Y41 Y45
func TestNoBrokenFileLiftsTheFloor(t *testing.T) {
	good := "schema_version = \"1.0\"\nname = \"bound\"\n[capabilities]\nkb_read = [\"notes\"]\nkb_write = []\n"
	write := func(text string, mode os.FileMode) func(path string) error {
		return func(path string) error {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				return err
			}
			return os.Chmod(path, mode)
		}
	}
	for name, make := range map[string]func(path string) error{
		"good (control)":    write(good, 0o600),
		"missing":           func(string) error { return nil },
		"empty":             write("", 0o600),
		"cut":               write(good[:len(good)-4], 0o600),
		"another name":      write(strings.Replace(good, `"bound"`, `"other"`, 1), 0o600),
		"an unknown key":    write(good+"tool_denny = []\n", 0o600),
		"a wrong type":      write(strings.Replace(good, `["notes"]`, `7`, 1), 0o600),
		"no text":           write("\x00\xff", 0o600),
		"too long":          write(good+strings.Repeat("#", 70<<10), 0o600),
		"writable by all":   write(good, 0o666),
		"a folder":          func(path string) error { return os.Mkdir(path, 0o700) },
		"a link to nowhere": func(path string) error { return os.Symlink(path+"nowhere", path) },
		"an upper-case key": write(strings.Replace(good, "kb_read", "KB_READ", 1), 0o600),
	} {
		for _, broken := range [][2]string{{"bound", "deny"}, {"bound", "inherit"}, {"_delegate", "deny"}} {
			file := broken[0]
			home, out := filepath.Join(t.TempDir(), "home"), t.TempDir()
			binding := ""
			if file == "bound" {
				binding = "[delegation.bindings]\nchild = \"bound\"\n"
			}
			writeFile(t, filepath.Join(home, "config.toml"), "[delegation]\ncapability_default = \""+broken[1]+"\"\n"+binding)
			path := filepath.Join(home, "caps", "profiles", file+".toml")
			writeFile(t, filepath.Join(home, "caps", "profiles", "x.toml"), "")
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			dir := agentAt(t, out, "child", "kb_read = [\"notes\"]\nkb_write = [\"notes\"]\n")
			all, err := caps.Base([]caps.Entry{grantOf(t, "kb:read:notes"), grantOf(t, "kb:write:notes")}, caps.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			var warnings []string
			by := Origin{Surface: fromRun, parent: run.Parent{Delegation: &hostcalls.Delegation{
				Agent:  "child",
				Within: all.Layer("held"),
			}}, from: &Composition{}, Warn: func(w string) { warnings = append(warnings, w) }}
			a := readerOf(home)
			a.Env = []string{"HOME=" + out}
			c, err := a.Complete(&Composition{Path: dir, Origin: by}, Flags{})
			if err != nil {
				t.Fatal(err)
			}
			plan, err := run.NewPlan(c.Policy)
			if err != nil {
				t.Fatal(err)
			}
			writes := plan.Effective.Check(caps.Request{Family: caps.KBWrite, Name: "notes"})
			control := strings.Contains(name, "control") && file == "bound"
			if writes.Allow || !plan.Effective.Any(caps.KBRead) || (writes.Code == caps.DelegateFloor) == control {
				t.Errorf("%s, %s: a write is answered %+v, and %s is left", broken, name, writes, plan.Effective)
			}
			silent := control || file == "_delegate" && name == "missing" || file == "_delegate" &&
				strings.Contains(name, "control")
			if file == "_delegate" && strings.Contains(name, "control") {
				continue // its name is another: broken as well
			}
			if (len(warnings) == 0) != silent {
				t.Errorf("%s, %s: warnings %v", broken, name, warnings)
			}
		}
	}
}

func grantOf(t *testing.T, text string) caps.Entry {
	t.Helper()
	g, err := caps.ParseGrant(text)
	if err != nil {
		t.Fatal(err)
	}
	return caps.Entry{Grant: g}
}
