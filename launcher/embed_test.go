package launcher_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// page is the program of docs/embedding.md, which launches a bundle with an extra
// deny and prints what was denied and why.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := bytes.Cut(text, []byte("    package main\n"))
	program, _, ends := bytes.Cut(text, []byte("\n    }\n\n"))
	if !found || !ends {
		t.Fatal("docs/embedding.md has no program")
	}
	program = bytes.ReplaceAll(program, []byte("\n    "), []byte("\n"))
	if n := bytes.Count(program, []byte("\n")) + 3; n > 30 {
		t.Errorf("the program has %d lines", n)
	}
	return "package main\n" + string(program) + "\n}\n"
}

// str is a string, and section a section, of a module.
func str(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }

func section(id byte, body string) string { return string([]byte{id}) + str(body) }

// putting is a module that puts one value into the knowledge base.
func putting() string {
	data := "noteskv"
	code := "\x00\x41\x08\x41\x05\x41\x0d\x41\x01\x41\x0e\x41\x01\x41\x80\x01\x41\x20\x10\x00\x1a\x0b"
	return "\x00asm\x01\x00\x00\x00" +
		section(1, "\x02\x60\x08\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x01\x7e\x60\x00\x00") +
		section(2, "\x01"+str("runloop_v1")+str("kb_put")+"\x00\x00") +
		section(3, "\x01\x01") + section(5, "\x01\x00\x01") + section(7, "\x01"+str("_start")+"\x00\x01") +
		section(10, "\x01"+str(code)) + section(11, "\x01\x00\x41\x08\x0b"+str(data))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// outside builds a program as a module outside of this repository.
func outside(t *testing.T, source string) (path string, said []byte, err error) {
	t.Helper()
	tree, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(tree, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(tree, "go.mod")) // what go mod tidy would find by the network
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, requires, _ := strings.Cut(string(mod), "\n")
	write(t, filepath.Join(dir, "go.mod"), "module example.com/embeds\n"+requires+
		"\nrequire runloop.dev/rlp v0.0.0\n\nreplace runloop.dev/rlp => "+tree+"\n")
	write(t, filepath.Join(dir, "go.sum"), string(sums))
	write(t, filepath.Join(dir, "main.go"), source)
	path = filepath.Join(dir, "embeds")
	c := exec.Command("go", "build", "-mod=mod", "-ldflags=-s -w", "-o", path, ".")
	c.Dir, c.Env = dir, append(os.Environ(), "GOPROXY=off", "GOFLAGS=-trimpath", "GOWORK=off", "CGO_ENABLED=0")
	said, err = c.CombinedOutput()
	return path, said, err
}

// A Go program outside of the repository launches a bundle with an extra deny, and
// says why it was denied.
//
//rlp:holds D1
func TestAProgramOutsideLaunches(t *testing.T) {
	denies := page(t)
	for _, c := range []struct{ program, want string }{
		{denies, "ok denied: 1\ndenied: _start  caps_empty \ndenied: kb_put notes/k cap_missing caller\n"},
		{strings.ReplaceAll(denies, "kb:write:*", "kb:read:*"), "ok denied: 0\n"}, // control: nothing of it is taken
	} {
		path, said, err := outside(t, c.program)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		work := t.TempDir()
		out, err := exec.Command(path, filepath.Join(work, "home"), puts(t, work)).CombinedOutput()
		if text := string(out); err != nil || text != c.want {
			t.Errorf("%v: %s", err, text)
		}
	}
}

// puts is [putsIn] for a test.
func puts(t *testing.T, dir string) (bundle string) {
	t.Helper()
	bundle, err := putsIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// putsIn makes the bundle of an agent that puts one value into the knowledge base.
func putsIn(dir string) (bundle string, err error) {
	return agentIn(dir, "puts", putting(), "kb_write = [\"notes\"]")
}

// agentIn makes the bundle of an agent.
func agentIn(dir, name, module, asks string) (bundle string, err error) {
	bundle = filepath.Join(dir, name)
	err = os.MkdirAll(bundle, 0o700)
	for name, text := range map[string]string{
		"manifest.toml": "[agent]\nname = \"" + name + "\"\nversion = \"1.0.0\"\nkind = \"wasm32-wasip1\"\n" +
			"entry_wasm = { path = \"a.wasm\" }\n[caps]\nfile = \"policy.caps\"\n",
		"a.wasm":      module,
		"policy.caps": "[capabilities]\n" + asks + "\n",
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(bundle, name), []byte(text), 0o600))
	}
	return bundle, err
}
