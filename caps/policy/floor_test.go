//go:build unix

package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// denied is what of the universe a layer takes from the broad base.
func denied(t testing.TB, l *caps.Layer) string {
	t.Helper()
	b := base(t, broad)
	set, _ := narrow(t, b, l)
	var out []string
	for _, s := range strings.Fields(universe) {
		if allows(t, b, s) && !allows(t, set, s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, " ")
}

const floorDenies = "kb:write:contacts kb:write:artifacts " + secAll +
	" process:exec:/bin/a process:exec:/bin/b agents:launch:c agents:launch:d"

// Both floors deny one set, from one table, and leave reading and thinking as
// they were; each says by its reason which one it was.
//
//rlp:holds Y29 Y30 Y40
func TestBuiltinFloors(t *testing.T) {
	for name, want := range map[string]caps.Code{
		policy.Untrusted: caps.UntrustedContext,
		policy.Delegate:  caps.DelegateFloor,
	} {
		floor := policy.BuiltinFloor(name)
		if got := denied(t, floor); got != floorDenies {
			t.Errorf("%s denies %s", name, got)
		}
		set, _ := narrow(t, base(t, broad), floor)
		r := caps.Request{Family: caps.KBWrite, Name: "contacts"}
		if d := set.Check(r); d.Allow || d.Code != want || set.LayerName(d.Layer) != name {
			t.Errorf("%s: %+v by %s", name, d, set.LayerName(d.Layer))
		}
		for tool, left := range map[string]bool{
			"memory:kb_put": false, "memory:kb_get": true, "exec:exec_run": false,
			"multi_agent:agent_install": false, "web:net_http": true,
		} {
			if got := set.Check(caps.Request{Family: caps.Tool, Name: tool}).Allow; got != left {
				t.Errorf("%s: %s is left: %v", name, tool, got)
			}
		}
	}
}

// What `rlp caps profiles` prints to copy is the floor that holds, in the
// format of the file that replaces it.
func TestFloorText(t *testing.T) {
	for _, name := range []string{policy.Untrusted, policy.Delegate} {
		p, findings := policy.ParseProfile(name, name+".toml", []byte(policy.FloorText(name)), options)
		if p == nil {
			t.Fatal(findings)
		}
		b := base(t, broad)
		text, _ := narrow(t, b, p.Layer)
		built, _ := narrow(t, b, policy.BuiltinFloor(name))
		if text.Digest() != built.Digest() {
			t.Errorf("%s: the text and the table differ:\n%s", name, policy.FloorText(name))
		}
	}
}

// floorFile is a home's folder of profiles with one file in it.
func floorFile(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "_untrusted.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The operator's own file takes the built-in floor's place, and so may loosen
// it; having none is no word at all.
//
//rlp:holds Y32
func TestFloorIsReplaced(t *testing.T) {
	own := floorFile(t, "[deny]\ncapabilities = [\"kb:write:contacts\", \"exec:*:*\"]\n")
	floor, warning := policy.Floor(policy.Untrusted, own, options)
	if warning != "" || denied(t, floor) != "kb:write:contacts process:exec:/bin/a process:exec:/bin/b" {
		t.Errorf("%q: %s", warning, denied(t, floor))
	}
	if floor.Because != caps.UntrustedContext || floor.Name != policy.Untrusted {
		t.Errorf("the reason is %s of %s", floor.Because, floor.Name)
	}
	lifted, warning := policy.Floor(policy.Untrusted, floorFile(t, "[deny]\ncapabilities = []\n"), options)
	if warning != "" || denied(t, lifted) != "" {
		t.Errorf("a floor that is lifted on purpose: %q, %s", warning, denied(t, lifted))
	}
	looks := options
	looks.Stat = os.Stat
	for _, none := range []string{filepath.Join(filepath.Dir(own), "_other.toml"), "/srv/no/such/folder/_untrusted.toml"} {
		if floor, warning := policy.Floor(policy.Untrusted, none, looks); warning != "" || denied(t, floor) != floorDenies {
			t.Errorf("%s: %q", none, warning)
		}
	}
}

// Whatever is wrong with the file, the built-in floor holds, and it is said
// why. The control is above: the same file, well, loosens.
//
//rlp:holds Y18 Y33 Y34 Y41
func TestFloorFallsBack(t *testing.T) {
	const loose = "[deny]\ncapabilities = []\n"
	for name, text := range map[string]string{
		"empty": "", "a comment": "# nothing\n", "a header": "[deny]\n", "words alone": "description = \"all is well\"\n",
		"a list": "[[deny]]\n", "a scalar": "deny = true\n", "no TOML": "deny: []\n", "null": "null\n",
		"a typo":            "[deny]\ncapabilties = []\n",
		"a typo of a table": "[denny]\ncapabilities = []\n", "another's name": "name = \"_delegate\"\n" + loose,
		"wrong type":     "[deny]\ncapabilities = \"\"\n",
		"another system": "tool_deny = []\n", "too large": loose + "#" + strings.Repeat("x", 70_000), "values": loose +
			"[params]\nx = \"/a\"\n",
	} {
		expectBuiltin(t, name, floorFile(t, text))
	}
	replace := func(do func(path string) error) string {
		path := floorFile(t, loose)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := do(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	expectBuiltin(t, "a folder", replace(func(p string) error { return os.Mkdir(p, 0o700) }))
	expectBuiltin(t, "a dangling link", replace(func(p string) error { return os.Symlink("/srv/nowhere", p) }))
	expectBuiltin(t, "a link", replace(func(p string) error { return os.Symlink(floorFile(t, loose), p) }))
	expectBuiltin(t, "a pipe", replace(func(p string) error { return syscall.Mkfifo(p, 0o600) }))
	writable := floorFile(t, loose)
	if err := os.Chmod(writable, 0o622); err != nil {
		t.Fatal(err)
	}
	expectBuiltin(t, "a file that others may write", writable)
	if os.Geteuid() == 0 {
		foreign := floorFile(t, loose)
		if err := os.Chown(foreign, 12345, -1); err != nil {
			t.Fatal(err)
		}
		expectBuiltin(t, "a file of somebody else", foreign)
	}
}

func expectBuiltin(t *testing.T, what, path string) {
	t.Helper()
	for _, name := range []string{policy.Untrusted, policy.Delegate} {
		floor, warning := policy.Floor(name, path, options)
		if got := denied(t, floor); got != floorDenies {
			t.Errorf("%s: it denies %q", what, got)
		}
		if !strings.Contains(warning, path) || !strings.Contains(warning, "built-in") {
			t.Errorf("%s: said %q", what, warning)
		}
	}
}

// The floor of programs leaves them what they start and routes to hosts that are
// trusted over https, and takes the rest.
func TestTheFloorOfPrograms(t *testing.T) {
	const programs = "process:exec:/bin/a process:exec:/bin/b "
	for trusted, kept := range map[string]string{
		"": "", "https://a.example": "secrets:use:runloop/a/b@a.example:443 ", "http://a.example": "",
		"https://*.example": "secrets:use:runloop/a/b@a.example:443 secrets:use:runloop/a/b@b.example:443", "a.example:8443": "",
	} {
		b := base(t, broad)
		var entries []caps.Entry
		for _, g := range b.BaseGrants() {
			entries = append(entries, caps.Entry{Grant: g})
		}
		var hosts []caps.Grant
		if trusted != "" {
			g, err := caps.ParseTrustedHost(trusted)
			if err != nil {
				t.Fatal(err)
			}
			hosts = append(hosts, g)
		}
		var want []string
		for s := range strings.FieldsSeq(floorDenies) {
			if !strings.Contains(programs+kept+" ", s+" ") {
				want = append(want, s)
			}
		}
		floor := policy.ProgramFloor(entries, hosts)
		if got := denied(t, floor); got != strings.Join(want, " ") {
			t.Errorf("with %q trusted it denies %s, want %s", trusted, got, want)
		}
		set, _ := narrow(t, b, floor)
		if d := set.Check(caps.Request{Family: caps.KBWrite, Name: "contacts"}); d.Code != caps.UntrustedContext {
			t.Errorf("%+v", d)
		}
	}
}
