//go:build unix

package bundles

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const sourceManifest = `# The writer.
[agent]
name = "writer"            # who it is
version = "0.1.0"
kind = "wasm32-wasip1"
entry_wasm = { path = "bin/agent.wasm" }   # built

[requires]
time = true

[artifacts.tools]
path = "tools.json" # what it calls
version = 1
`

func source(t *testing.T) (string, tree) {
	t.Helper()
	tr := tree{
		ManifestName: sourceManifest, "policy.caps": testPolicy, "tools.json": noTools, "main.go": "package main\n",
		"schemas/a.json": "{}", "schemas/note.txt": "", "sub/x": "",
	}
	dir := filepath.Join(t.TempDir(), "agents", "writer")
	tr.writeTo(t, dir)
	return dir, tr
}

// No command is taken of a manifest that somebody else wrote, or may write.
func TestSourceManifestOfOthers(t *testing.T) {
	dir, _ := source(t)
	manifest := filepath.Join(dir, ManifestName)
	must(t, os.WriteFile(manifest, []byte(sourceManifest+"[build]\ncommand = [\"make\"]\noutput = \"agent.wasm\"\n"), 0o600))
	asked := func(what, file string) {
		t.Helper()
		_, err := SourceManifest(dir)
		var e *Error
		if file == "" && err != nil {
			t.Errorf("control, %s: %v", what, err)
		}
		if file != "" && (!errors.As(err, &e) || e.Code != "owner" || e.File != file) {
			t.Errorf("%s: %v", what, err)
		}
	}
	asked("the operator's own", "")
	for path, mode := range map[string]fs.FileMode{manifest: 0o666, dir: 0o777} {
		info, err := os.Stat(path)
		must(t, err)
		must(t, os.Chmod(path, mode))
		asked("others may write", path)
		must(t, os.Chmod(path, info.Mode().Perm()))
		if os.Geteuid() == 0 {
			must(t, os.Chown(path, 1, -1))
			asked("another user's", path)
			must(t, os.Chown(path, 0, -1))
		}
	}
	asked("the operator's own again", "")
	must(t, os.WriteFile(manifest, []byte(sourceManifest), 0o600))
	must(t, os.Chmod(manifest, 0o666))
	asked("without a command", "")
}

// A source folder is launched from what was built in it, and the policy that
// holds is the folder's.
//
//rlp:holds R1 R2
func TestBuild(t *testing.T) {
	dir, _ := source(t)
	e := wantRefused(t, dir, "module_missing")
	if !strings.Contains(e.Hint, "rlp agent build "+dir) || !strings.Contains(e.Hint, "make agents") {
		t.Errorf("an unbuilt folder: %v", e)
	}
	built, err := Build(dir, []byte(testWasm))
	must(t, err)
	if built != filepath.Join(dir, "agent.bundle") {
		t.Errorf("built %s", built)
	}
	b := mustOpen(t, dir)
	if b.Path != built || b.Source != dir || string(b.Wasm) != testWasm || string(b.Policy) != testPolicy ||
		codes(b) != "" {
		t.Errorf("%+v", b)
	}
	if got := strings.Join(sortedKeys(b.Files), " "); got != "bin/agent.wasm manifest.toml policy.caps schemas/a.json tools.json" {
		t.Errorf("files %s", got)
	}
	if alone := mustOpen(t, built); alone.Digest != b.Digest || alone.Source != "" {
		t.Errorf("the bundle by itself: %+v", alone)
	}
	want := strings.NewReplacer(
		`"bin/agent.wasm" }`, `"bin/agent.wasm", sha256 = "`+hexSum(testWasm)+`" }`,
		"# what it calls\n", "# what it calls\nsha256 = \""+hexSum(noTools)+"\"\n",
	).Replace(sourceManifest) + "\n[caps]\nfile = \"policy.caps\"\nsha256 = \"" + hexSum(testPolicy) + "\"\n"
	if got := string(b.Files[ManifestName]); got != want {
		t.Errorf("manifest\n%s\nwant\n%s", got, want)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".agent*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A policy that was tightened after the build would not hold: that refuses.
//
//rlp:holds R1
func TestStaleBuild(t *testing.T) {
	dir, tr := source(t)
	_, err := Build(dir, []byte(testWasm))
	must(t, err)
	tr.with("policy.caps", "[capabilities]\ntime = false\n").writeTo(t, dir)
	// Control: the built one by itself still has the old policy.
	if b := mustOpen(t, filepath.Join(dir, BuiltName)); string(b.Policy) != testPolicy {
		t.Fatalf("control: %q", b.Policy)
	}
	e := wantRefused(t, dir, "stale_build")
	if e.File != filepath.Join(dir, "policy.caps") || !strings.Contains(e.Hint, "rlp agent build "+dir) {
		t.Errorf("%v", e)
	}
	tr.with("tools.json", noTools+"\n").writeTo(t, dir)
	if e := wantRefused(t, dir, "stale_build"); e.File != filepath.Join(dir, "tools.json") {
		t.Errorf("%v", e)
	}
	tr.with("policy.caps", "[capabilities]\ntime = false\n").writeTo(t, dir)
	_, err = Build(dir, []byte(testWasm+"\x00\x01\x00"))
	must(t, err)
	if b := mustOpen(t, dir); string(b.Policy) != "[capabilities]\ntime = false\n" || len(b.Wasm) != len(testWasm)+3 {
		t.Errorf("built again: %q", b.Policy)
	}
	must(t, os.WriteFile(filepath.Join(dir, ManifestName), []byte(sourceManifest+"# more\n"), 0o644))
	if b := mustOpen(t, dir); codes(b) != "stale_build" || b.Findings[0].Path != filepath.Join(dir, ManifestName) {
		t.Errorf("an edited manifest: %v", b.Findings)
	}
	must(t, os.Remove(filepath.Join(dir, ManifestName)))
	must(t, os.Remove(filepath.Join(dir, "policy.caps")))
	if b := mustOpen(t, dir); codes(b) != "" {
		t.Errorf("a folder with the bundle alone: %v", b.Findings)
	}
}

// Code that is newer than the module is a remark: a launch runs the last build. What is
// no code of it is none, and neither is what one copy of a folder made.
func TestCodeNewerThanItsBuild(t *testing.T) {
	built := time.Now().Add(-time.Hour)
	for _, c := range []struct {
		file, build string
		after       time.Duration
		want        string
	}{
		{"main.go", "", time.Minute, "main.go"},
		{"src/more.go", "", time.Minute, "src/more.go"},
		{"main.go", "", -time.Minute, ""},
		{"main.go", "", time.Second, ""},
		{"main_test.go", "", time.Minute, ""},
		{"notes.md", "", time.Minute, ""},
		{"main.c", "", time.Minute, ""},
		{"main.c", "[build]\noutput = \"x.wasm\"\n", time.Minute, "main.c"},
		{"src/main.rs", "[build]\noutput = \"x.wasm\"\n", time.Minute, "src/main.rs"},
	} {
		dir, _ := source(t)
		must(t, os.WriteFile(filepath.Join(dir, ManifestName), []byte(sourceManifest+c.build), 0o644))
		_, err := Build(dir, []byte(testWasm))
		must(t, err)
		path := filepath.Join(dir, filepath.FromSlash(c.file))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, nil, 0o644))
		must(t, os.Chtimes(filepath.Join(dir, "main.go"), built, built))
		must(t, os.Chtimes(path, built.Add(c.after), built.Add(c.after)))
		must(t, os.Chtimes(filepath.Join(dir, BuiltName, ManifestName), built, built))
		got := ""
		for _, f := range mustOpen(t, dir).Findings {
			rel, err := filepath.Rel(dir, f.Path)
			must(t, err)
			got += filepath.ToSlash(rel)
			if f.Code != "stale_build" || !strings.Contains(f.Hint, "rlp agent build "+dir) {
				t.Errorf("%+v", f)
			}
		}
		if got != c.want {
			t.Errorf("%s %v behind the build: %q is remarked, want %q", c.file, c.after, got, c.want)
		}
	}
}

// A policy that appeared after a build without one.
func TestStaleWithoutPolicy(t *testing.T) {
	dir, _ := source(t)
	must(t, os.Remove(filepath.Join(dir, "policy.caps")))
	_, err := Build(dir, []byte(testWasm))
	must(t, err)
	if b := mustOpen(t, dir); b.PolicyPresent {
		t.Fatal("a policy from nowhere")
	}
	for _, text := range []string{testPolicy, ""} { // an empty one asks for nothing, none leaves [requires] alone
		must(t, os.WriteFile(filepath.Join(dir, "policy.caps"), []byte(text), 0o644))
		wantRefused(t, dir, "stale_build")
	}
}

// What was built in a folder is a directory in it, not a link out of it.
func TestBuiltIsALink(t *testing.T) {
	dir, _ := source(t)
	built, other := filepath.Join(dir, BuiltName), goodTree().dir(t)
	must(t, os.Symlink(other, built))
	mustOpen(t, other) // control: what the link leads to is a bundle
	wantRefused(t, dir, "entry_type")
	_, err := Build(dir, []byte(testWasm)) // takes the place of the link, not of what it leads to
	must(t, err)
	if b := mustOpen(t, dir); string(b.Wasm) != testWasm {
		t.Errorf("%q", b.Wasm)
	}
	mustOpen(t, other)

	// A link that is put there after the look is noticed by what it opens.
	info, err := os.Lstat(built)
	must(t, err)
	var e *Error
	if _, err := readDir(other, info); !errors.As(err, &e) || e.Code != codeReplaced {
		t.Errorf("another directory than the one looked at: %v", err)
	}
}

// The source policy is read without waiting and without following it out.
func TestSourcePolicyIsAFile(t *testing.T) {
	dir, _ := source(t)
	_, err := Build(dir, []byte(testWasm))
	must(t, err)
	mustOpen(t, dir)
	policy := filepath.Join(dir, "policy.caps")
	must(t, os.Rename(policy, filepath.Join(dir, "real.caps")))
	must(t, os.Symlink("real.caps", policy))
	wantRefused(t, dir, "entry_type")
	must(t, os.Remove(policy))
	must(t, syscall.Mkfifo(policy, 0o644))
	returns(t, func() { wantRefused(t, dir, "entry_type") })
}

func TestRefusedBuilds(t *testing.T) {
	build := func(dir string, wasm string) *Error {
		t.Helper()
		built, err := Build(dir, []byte(wasm))
		var e *Error
		if built != "" || !errors.As(err, &e) {
			t.Fatalf("%q, %v, want a refusal", built, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".agent*")); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
		return e
	}
	dir, tr := source(t)
	_, err := Build(dir, []byte(testWasm))
	must(t, err)
	before := mustOpen(t, dir).Digest

	if e := build(dir, "MZ"); e.Code != "module" {
		t.Errorf("%v", e)
	}
	must(t, os.Remove(filepath.Join(dir, "tools.json")))
	if e := build(dir, testWasm); e.Code != "file_missing" || e.Line != 12 || e.Column != 8 {
		t.Errorf("%v", e)
	}
	must(t, os.Symlink("main.go", filepath.Join(dir, "tools.json")))
	if e := build(dir, testWasm); e.Code != "entry_type" {
		t.Errorf("%v", e)
	}
	must(t, os.Remove(filepath.Join(dir, "tools.json")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "tools.json"), 0o644))
	if e := build(dir, testWasm); e.Code != "entry_type" {
		t.Errorf("%v", e)
	}
	must(t, os.Remove(filepath.Join(dir, "tools.json")))
	tr.with(ManifestName, strings.Replace(sourceManifest, "writer\"", "Writer\"", 1)).writeTo(t, dir)
	if e := build(dir, testWasm); e.Code != "manifest" {
		t.Errorf("%v", e)
	}
	tr.writeTo(t, dir)
	twice := tr.with(ManifestName, strings.Replace(sourceManifest, "tools.json", "Tools.json", 1)).with("Tools.json", "[]")
	twice.writeTo(t, dir)
	if e := build(dir, testWasm); e.Code != "entry_duplicate" {
		t.Errorf("two names of one file: %v", e)
	}
	tr.writeTo(t, dir)
	if after := mustOpen(t, dir).Digest; after != before {
		t.Error("a refused build changed the bundle")
	}
	if _, err := Build(t.TempDir(), []byte(testWasm)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a manifest: %v", err)
	}
}

// Whatever the umask of the builder, the bundle can be opened and nobody else
// can write it.
func TestBuildUnderAnyUmask(t *testing.T) {
	dir, _ := source(t)
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	_, err := Build(dir, []byte(testWasm))
	must(t, err)
	mustOpen(t, filepath.Join(dir, BuiltName))
}

// Somebody opens the folder while it is built over and over: what comes out is
// the old bundle or the new one, whole.
func TestBuildIsOneStep(t *testing.T) {
	dir, _ := source(t)
	modules := []string{testWasm, testWasm + "\x00\x01\x00"}
	_, err := Build(dir, []byte(modules[0]))
	must(t, err)
	var builder sync.WaitGroup
	builder.Go(func() {
		for i := range 60 {
			if _, err := Build(dir, []byte(modules[i%2])); err != nil {
				t.Errorf("building: %v", err)
				return
			}
		}
	})
	defer builder.Wait()
	done := make(chan struct{})
	go func() { builder.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		b, err := Open(dir)
		var e *Error
		switch {
		case err == nil:
			if w := string(b.Wasm); w != modules[0] && w != modules[1] {
				t.Fatalf("module %q", w)
			}
		case !errors.As(err, &e):
			if !errors.Is(err, fs.ErrNotExist) { // the old one went away while it was read
				t.Fatal(err)
			}
		case e.Code != codeReplaced && e.Code != codeNoModule && e.Code != codeNoManifest && e.Code != "file_missing":
			t.Fatalf("a mixture: %v", err)
		case runtime.GOOS == "linux" && !strings.Contains(e.File, BuiltName):
			t.Fatalf("there was no bundle for a moment: %v", err)
		}
	}
}

func TestReplaceByMoving(t *testing.T) {
	dir := t.TempDir()
	temp, built := filepath.Join(dir, "temp"), filepath.Join(dir, "built")
	for _, text := range []string{"1", "2"} {
		tree{"x": text}.writeTo(t, temp)
		must(t, replaceByMoving(temp, built))
		if got, err := os.ReadFile(filepath.Join(built, "x")); err != nil || string(got) != text {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if err := replaceByMoving(filepath.Join(dir, "missing"), built); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if got, err := os.ReadFile(filepath.Join(built, "x")); err != nil || string(got) != "2" {
		t.Errorf("after a failure: %q, %v", got, err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("left behind: %v", list)
	}
}

// Digests go into every way of writing the tables, or the place is named where
// they cannot.
func TestFillDigests(t *testing.T) {
	files := map[string][]byte{"a.wasm": []byte(testWasm), "p.caps": []byte(testPolicy), "t.json": []byte("{}")}
	head := strings.TrimPrefix(agentHead, "[agent]\n")
	for _, text := range []string{
		agentHead + "entry_wasm = { path = \"a.wasm\" }\n[caps]\nfile = \"p.caps\"\n",
		agentHead + "entry_wasm = { path = 'a.wasm' }\n[caps]\nfile = 'p.caps'",
		agentHead + "entry_wasm = {path=\"a.wasm\",sha256=\"" + strings.Repeat("0", 64) + "\"}\n[caps]\nblake3 = '" +
			strings.Repeat("0", 64) + "'\nfile='p.caps' # x",
		agentHead + "entry_wasm = { sha256 = \"" + strings.Repeat("0", 64) + "\", blake3 = \"" + strings.Repeat("1", 64) +
			"\", path = \"\\u0061.wasm\" }\n",
		agentHead + "entry_wasm.path = \"a.wasm\"\n",
		agentHead + "[agent.entry_wasm]\n  path = \"a.wasm\"  # é\n\n[artifacts]\nt = { path = \"t.json\" }\n",
		agentHead + "[entry_wasm]\npath = \"a.wasm\"\n[artifacts.\"é # [\"]\n\tpath = \"t.json\"",
		"artifacts.t.path = \"t.json\"\ncaps . file = \"p.caps\"\nentry_wasm.path = \"a.wasm\"\n" + agentHead,
		strings.ReplaceAll(agentHead+"entry_wasm = { path = \"a.wasm\" }\n[caps]\nfile = \"p.caps\"\n", "\n", "\r\n"),
		"agent = { " + strings.ReplaceAll(strings.TrimSpace(head), "\n", ", ") + ", entry_wasm = { path = \"a.wasm\" } }\n",
	} {
		filled, err := fillDigests("m.toml", []byte(text), files, "")
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		checkFilled(t, text, files)
		if ends := bytes.Count(filled, []byte("\n")); strings.Contains(text, "\r\n") &&
			bytes.Count(filled, []byte("\r\n")) != ends {
			t.Errorf("line ends were mixed: %q", filled)
		}
	}
	for _, text := range []string{
		agentHead + "entry_wasm = { path = \"\"\"a.wasm\"\"\" }\n",
		"agent = { " + strings.ReplaceAll(strings.TrimSpace(head), "\n", ", ") + ", entry_wasm.path = \"a.wasm\" }\n",
	} {
		var e *Error
		if _, err := fillDigests("m.toml", []byte(text), files, ""); !errors.As(err, &e) || e.Line == 0 || e.Hint == "" {
			t.Errorf("%v\n%s", err, text)
		}
	}
}
