package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// bundleOf is a bundle of a module.
func bundleOf(t testing.TB, wasm []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bomb")
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"manifest.toml": "[agent]\nname = \"bomb\"\nversion = \"1.0.0\"\nkind = \"wasm32-wasip1\"\ndescription = \"a bomb\"\n" +
			"entry_wasm = { path = \"bin/bomb.wasm\" }\n\n[caps]\nfile = \"policy.caps\"\n",
		"policy.caps":   "[capabilities]\ntime = true\n",
		"bin/bomb.wasm": string(wasm),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// self is rlp as the tests' own program.
func self(t *testing.T, home string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Args = append([]string{"rlp"}, args...)
	cmd.Env = []string{"HOME=" + home, "RLP_SECRET_x=hidden", "GORACE=" + os.Getenv("GORACE")}
	return cmd
}
