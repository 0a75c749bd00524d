package bundles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const tinyModule = moduleMagic + "\x01\x00\x00\x00"

// A module without a bundle is what its file holds, read once, and is named after it.
//
//rlp:holds D4
func TestAModuleIsAnAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "Tiny one.wasm")
	if err := os.WriteFile(path, []byte(tinyModule), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := OpenOrModule(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("something else"), 0o600); err != nil { // what was hashed is what is compiled
		t.Fatal(err)
	}
	if string(b.Wasm) != tinyModule || b.Digest != sha256Hex([]byte(tinyModule)) || b.WasmSHA256 != b.Digest {
		t.Errorf("%q, %s, %s", b.Wasm, b.Digest, b.WasmSHA256)
	}
	if !b.Bare || b.Manifest.Agent.String() != "tiny_one" || b.PolicyPresent || b.Path != path {
		t.Errorf("%+v", b)
	}
	if _, err := OpenOrModule(path); err == nil { // what it holds now
		t.Error("something else was opened")
	}
}

// What is no regular file by its own name is no module, and who takes bundles alone
// takes none.
func TestWhatIsNoModule(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.wasm")
	if err := os.WriteFile(path, []byte(tinyModule), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "y.wasm")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	folders := filepath.Join(dir, "folders")
	if err := os.Symlink(dir, folders); err != nil {
		t.Fatal(err)
	}
	for _, good := range []string{path, filepath.Join(folders, "x.wasm")} {
		if _, err := OpenOrModule(good); err != nil {
			t.Errorf("control: %v", err)
		}
	}
	for _, c := range []struct {
		path, want string
		open       func(string) (*Bundle, error)
	}{
		{link, "symbolic link", OpenOrModule},
		{path, "without a bundle", Open},
		{link, "without a bundle", Open},
	} {
		if _, err := c.open(c.path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.path, err)
		}
	}
	if _, err := Read("sent", []byte(tinyModule)); err == nil || !strings.Contains(err.Error(), "without a bundle") {
		t.Errorf("sent: %v", err)
	}
}
