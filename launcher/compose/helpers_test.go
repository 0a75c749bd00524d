package compose

import (
	"os"
	"path/filepath"
	"testing"

	"runloop.dev/rlp/internal/effect/jail"
)

// emptyWasm is a module whose _start does nothing.
const emptyWasm = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b"

// removed is a file that is taken away.
const removed = "\x00gone"

// writeFile writes a file and the folders that it lies in.
func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// agentAt writes a bundle of an agent that does nothing, below dir.
func agentAt(t testing.TB, dir, name, policy string) string {
	t.Helper()
	dir = filepath.Join(dir, name)
	writeFile(t, filepath.Join(dir, "manifest.toml"), "[agent]\nname = \""+name+
		"\"\nversion = \"1.0.0\"\nkind = \"wasm32-wasip1\"\n"+
		"entry_wasm = { path = \"a.wasm\" }\n[caps]\nfile = \"policy.caps\"\n")
	writeFile(t, filepath.Join(dir, "a.wasm"), emptyWasm)
	writeFile(t, filepath.Join(dir, "policy.caps"), "[capabilities]\n"+policy)
	return dir
}

// readerOf reads what lies in a home.
func readerOf(home string) *Reader {
	return &Reader{
		HomeDir: home, HomeSet: true, Tenant: "default", WorkingDir: os.Getwd, Files: jail.Canonical,
		Programs: func() []string { return nil }, Say: func(string) {},
	}
}

// overridesOf are the files of one agent's overrides in a home.
func overridesOf(t testing.TB, home string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(home, "caps", "overrides", name)
		if text != removed {
			writeFile(t, path, text)
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
