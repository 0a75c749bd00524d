package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// made is a release of two targets, whose programs are this test's own file: an
// SBOM is read out of a real one.
func made(t *testing.T) (release, []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	for _, target := range []string{"linux/amd64", "darwin/arm64"} {
		dir := filepath.Join(work, filepath.FromSlash(target))
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "rlp"), program, 0o755),
			os.WriteFile(filepath.Join(dir, "rlp-confine"), []byte("program of "+target), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	targets, err := built(work)
	if err != nil || len(targets) != 2 {
		t.Fatalf("%v, %v", targets, err)
	}
	return release{source: os.DirFS("../../.."), work: work, printed: pages{
		version: "1.2.3", manual: []entry{{"share/man/man1/rlp.1", 0o644, []byte(".TH")}},
		completions: map[string][]byte{"bash": []byte("b"), "zsh": []byte("z"), "fish": []byte("f")},
	}}, targets
}

func TestTheSameBytesEachTime(t *testing.T) {
	var contents [2]map[string]string
	for i := range contents {
		r, targets := made(t)
		late := time.Now().Add(time.Duration(i) * time.Hour)
		if err := os.Chtimes(filepath.Join(r.work, "linux/amd64/rlp"), late, late); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := archives(r, targets, dir, io.Discard); err != nil {
			t.Fatal(err)
		}
		contents[i] = make(map[string]string)
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			contents[i][f.Name()] = fmt.Sprintf("%x", sha256.Sum256(data))
		}
	}
	if len(contents[0]) != 5 {
		t.Errorf("made %v", contents[0])
	}
	for name, sum := range contents[0] {
		if contents[1][name] != sum {
			t.Errorf("%s differs", name)
		}
	}
}

func TestSumsAreThoseOfTheFiles(t *testing.T) {
	r, targets := made(t)
	dir := t.TempDir()
	if err := archives(r, targets, dir, io.Discard); err != nil {
		t.Fatal(err)
	}
	check := func() error {
		c := exec.Command("sha256sum", "--check", "--strict", sumsName)
		c.Dir = dir
		return c.Run()
	}
	if err := check(); err != nil {
		t.Errorf("what was made: %v", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "rlp_1.2.3_linux_amd64.tar.gz"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if check() == nil {
		t.Error("control: a file that was changed is not found")
	}
}

// unpacked are the modes of what an archive has, without its top folder.
func unpacked(t *testing.T, path string) map[string]fs.FileMode {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]fs.FileMode)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Uname != "" || !h.ModTime.Equal(when) {
			t.Errorf("%s has an owner or a time: %+v", h.Name, h)
		}
		_, name, _ := strings.Cut(h.Name, "/")
		found[name] = h.FileInfo().Mode()
	}
}

func TestWhatAnArchiveHas(t *testing.T) {
	r, targets := made(t)
	dir := t.TempDir()
	if err := archives(r, targets, dir, io.Discard); err != nil {
		t.Fatal(err)
	}
	everywhere := []string{
		"bin/rlp", "share/man/man1/rlp.1", "share/bash-completion/completions/rlp", "share/zsh/site-functions/_rlp",
		"share/fish/vendor_completions.d/rlp.fish", "share/doc/rlp/README.md", "share/doc/rlp/ARCHITECTURE.md",
		"share/doc/rlp/RATIONALE.md",
		"share/doc/rlp/docs/install.md", "share/doc/rlp/rlp.cdx.json",
	}
	linux := []string{
		"bin/rlp-confine",
		"lib/systemd/system/rlp.service", "lib/systemd/user/rlp.service", "share/doc/rlp/exec.conf",
		"share/doc/rlp/Dockerfile", "share/doc/rlp/image/var/lib/rlp/",
	}
	onLinux, onDarwin := unpacked(t, filepath.Join(dir, "rlp_1.2.3_linux_amd64.tar.gz")),
		unpacked(t, filepath.Join(dir, "rlp_1.2.3_darwin_arm64.tar.gz"))
	for _, name := range everywhere {
		if onLinux[name] == 0 || onDarwin[name] == 0 {
			t.Errorf("%s is not everywhere", name)
		}
	}
	for _, name := range linux {
		if onLinux[name] == 0 || onDarwin[name] != 0 {
			t.Errorf("%s is not on Linux alone", name)
		}
	}
	if onLinux["bin/rlp"] != 0o755 || onLinux["bin/rlp-confine"] != 0o755 ||
		onLinux["share/doc/rlp/image/var/lib/rlp/"].Perm() != 0o700 {
		t.Errorf("modes: %v", onLinux)
	}
}

// What installs names the program where it is, whatever was there before.
func TestInstall(t *testing.T) {
	r, _ := made(t)
	root := t.TempDir()
	for range 2 { // the second time in the place of the first
		if err := install(r, "linux/amd64", root, "/opt/rlp"); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(root, "opt/rlp/bin/rlp"))
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	unit, err := os.ReadFile(filepath.Join(root, "opt/rlp/lib/systemd/system/rlp.service"))
	if err != nil || !strings.Contains(string(unit), "\nExecStart=/opt/rlp/bin/rlp serve\n") {
		t.Errorf("%s, %v", unit, err)
	}
	if err := install(r, "linux/amd64", root, "opt"); err == nil {
		t.Error("a PREFIX that depends on where one stands")
	}
}

func TestNothingWasBuilt(t *testing.T) {
	if targets, err := built(t.TempDir()); err == nil {
		t.Errorf("targets of nothing: %v", targets)
	}
	r := release{source: fstest.MapFS{}, work: t.TempDir()}
	if _, _, err := r.files("linux/amd64", "/usr"); err == nil {
		t.Error("files of nothing")
	}
}

func TestSBOMNamesWhatIsLinked(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Path: "runloop.dev/rlp"}, Deps: []*debug.Module{
		{Path: "example.com/b", Version: "v2.0.0+incompatible", Sum: "h1:x"},
		{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1"}},
	}}
	text, err := json.Marshal(document(info, "1.2.3", "linux/arm64"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"bomFormat":"CycloneDX","specVersion":"1.6","version":1`,
		`"pkg:golang/runloop.dev/rlp@v1.2.3?goos=linux\u0026goarch=arm64"`,
		`"pkg:golang/std@1.26.1"`, `"pkg:golang/example.com/b@v2.0.0%2Bincompatible"`, `"pkg:golang/example.com/fork@v1.0.1"`,
		`"value":"h1:x"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(string(text), "example.com/a@") {
		t.Error("it names what was replaced")
	}
	// The control: of a real program, this one.
	r, _ := made(t)
	got, err := r.sbom("linux/amd64", filepath.Join(r.work, "linux/amd64", "rlp"))
	if err != nil || !strings.Contains(string(got), `"name": "std"`) {
		t.Errorf("%s, %v", got, err)
	}
}
