package bundles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const programHead = "[agent]\nname = \"tool\"\nversion = \"0.1.0\"\nkind = \"program\"\n"

func TestProgramManifest(t *testing.T) {
	m := parse(t, programHead+`entry_program = { path = "bin/tool", args = ["-x", "y z"], sha256 = "`+
		strings.Repeat("AB", 32)+`" }`)
	if !m.Program || m.OfMachine() || m.Entry.Path != "bin/tool" || len(m.Args) != 2 || m.Args[1] != "y z" ||
		m.Entry.SHA256 != strings.Repeat("ab", 32) || len(m.Files()) != 1 {
		t.Errorf("%+v", m)
	}
	if m = parse(t, programHead+"[entry_program]\npath = \"/usr/bin/tool\"\n"); !m.OfMachine() || len(m.Files()) != 0 {
		t.Errorf("%+v", m)
	}
	entry := "entry_program = { path = \"tool\" }\n"
	for _, c := range []struct{ text, want string }{
		{programHead, `m.toml:1:2: the manifest names no entry_program (write entry_program = { path = "agent", sha256`},
		{programHead + entryLine, "m.toml:5:1: entry_wasm is of another kind of agent (write entry_program = "},
		{programHead + entry + "[entry_wasm]\npath = \"a.wasm\"\n", "6:2: entry_wasm is of another kind"},
		{agentHead + entryLine + "[entry_program]\npath = \"a\"\n", "6:2: entry_program is of another kind of agent (write entry_wasm"},
		{programHead + "entry_program = { path = \"../tool\" }\n", `5:26: "../tool": the name has the component ".."`},
		{
			programHead + "entry_program = { path = \"/usr/../bin/sh\" }\n",
			`5:26: "/usr/../bin/sh": the path is not as short as it can be (write /bin/sh)`,
		},
		{programHead + "entry_program = { path = \"/usr/bin/a\\u202eb\" }\n", "the path contains a character that turns"},
		{programHead + "entry_program = { path = \"\" }\n", `5:26: "": an entry has no name (a path inside the bundle`},
		{programHead + "entry_program = { args = [] }\n", `5:17: the key "path" is missing (write entry_program`},
		{programHead + "entry_program = { path = \"a\", args = \"x\" }\n", "5:38: args must be an array, not a string"},
		{programHead + "entry_program = { path = \"a\", args = [1] }\n", "args[0] must be a string"},
		{programHead + "entry_program = { path = \"a\", blake3 = \"x\" }\n", `5:31: unknown key "blake3"`},
		{programHead + "entry_program = \"tool\"\n", "5:17: entry_program must be a table, not a string"},
	} {
		if _, err := ParseManifest("m.toml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v\nwant %s", c.text, err, c.want)
		}
	}
}

// program is a file that one may execute.
func program(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

// A program is in the bundle, with the digest that its manifest gives; it is installed as
// what may be executed, and nothing else is.
func TestProgramInBundle(t *testing.T) {
	dir := t.TempDir()
	const text = "#!/bin/sh\necho it\n"
	manifest := programHead + "entry_program = { path = \"bin/tool\" }\n"
	must(t, os.WriteFile(filepath.Join(dir, ManifestName), []byte(manifest), 0o644))
	program(t, dir, "bin/tool", text)
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "entry_program has no sha256 (`rlp agent build` writes it)") {
		t.Errorf("without a digest: %v", err)
	}
	built, err := Build(dir, []byte(text))
	must(t, err)
	b, err := Open(built)
	must(t, err)
	if b.Wasm != nil || b.WasmSHA256 != "" || b.Manifest.Entry.SHA256 != sha256Hex([]byte(text)) {
		t.Errorf("%+v", b.Manifest)
	}
	at, err := b.Install(filepath.Join(dir, "agents"))
	must(t, err)
	for name, want := range map[string]os.FileMode{"bin/tool": 0o700, ManifestName: 0o600} {
		info, err := os.Stat(filepath.Join(at, name))
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has the mode %o, want %o", name, info.Mode().Perm(), want)
		}
	}
	must(t, os.WriteFile(filepath.Join(at, "bin", "tool"), []byte(text+"#"), 0o700))
	if _, err := Open(at); err == nil || !strings.Contains(err.Error(), "is not the file that the manifest means") {
		t.Errorf("another file: %v", err)
	}
	must(t, os.Remove(filepath.Join(at, "bin", "tool")))
	must(t, os.Symlink("/bin/true", filepath.Join(at, "bin", "tool")))
	if _, err := Open(at); err == nil || !strings.Contains(err.Error(), "a symbolic link; a bundle holds files and folders only") {
		t.Errorf("a link: %v", err)
	}
}

// A program of the machine is the file itself, that nobody else could have written, and
// no script.
func TestProgramOfMachine(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	tool := program(t, dir, "tool", "\x7fELF it")
	other := func(name string, change func(path string)) string {
		path := program(t, dir, name, "\x7fELF it")
		change(path)
		return path
	}
	manifest := func(path, sum string) string {
		return programHead + fmt.Sprintf("entry_program = { path = %q%s }\n", path, sum)
	}
	sum := `, sha256 = "` + sha256Hex([]byte("\x7fELF it")) + `"`
	bundle := filepath.Join(dir, "bundle")
	must(t, os.Mkdir(bundle, 0o755))
	for _, c := range []struct{ path, sum, want string }{
		{tool, sum, ""},
		{tool, "", "entry_program has no sha256"},
		{tool, `, sha256 = "` + strings.Repeat("0", 64) + `"`, "is not the file that the manifest means: its sha256 is " +
			sha256Hex([]byte("\x7fELF it")) + " (where it was upgraded, `rlp agent build`"},
		{filepath.Join(dir, "gone"), sum, "no such file"},
		{dir, sum, "this is a folder (name a program's file)"},
		{other("fifo", func(p string) { must(t, os.Remove(p)); must(t, syscall.Mkfifo(p, 0o755)) }), sum, "this is a pipe"},
		{
			other("link", func(p string) { must(t, os.Remove(p)); must(t, os.Symlink(tool, p)) }), sum,
			"a link is on the way to it (write path = \"" + tool + "\")",
		},
		{other("plain", func(p string) { must(t, os.Chmod(p, 0o644)) }), sum, "nobody may execute it"},
		{other("setuid", func(p string) { must(t, os.Chmod(p, 0o755|os.ModeSetuid)) }), sum, "it runs as its owner"},
		{other("shared", func(p string) { must(t, os.Chmod(p, 0o777)) }), sum, "others may write to this"},
		{other("huge", func(p string) { must(t, os.Truncate(p, MaxTotal+1)) }), sum, "at most 536870912 are read"},
		{
			other("script", func(p string) { must(t, os.WriteFile(p, []byte("#!/bin/sh\n"), 0o755)) }), sum,
			"this is a script (copy it into the bundle, or name what interprets it",
		},
		{"/dev/null", sum, "this is a device"},
		{"/proc/self/exe", sum, "a link is on the way"},
	} {
		must(t, os.WriteFile(filepath.Join(bundle, ManifestName), []byte(manifest(c.path, c.sum)), 0o644))
		_, err := Open(bundle)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("control: %s: %v", c.path, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrInvalid) ||
			!strings.Contains(err.Error(), "manifest.toml:")):
			t.Errorf("%s: %v\nwant %s", c.path, err, c.want)
		}
	}
	must(t, os.WriteFile(filepath.Join(bundle, ManifestName), []byte(manifest(tool, "")), 0o644))
	built, err := Build(bundle, nil)
	must(t, err)
	if b, err := Open(built); err != nil || !strings.Contains(string(b.Files[ManifestName]), sum) {
		t.Errorf("built: %v\n%s", err, b.Files[ManifestName])
	}
	if b, err := Open(bundle); err != nil || len(b.Findings) != 0 {
		t.Errorf("it is stale at once: %v %v", err, b.Findings)
	}
}
