package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command that only reads makes nothing where there is no home, or an empty one, or
// for a tenant that has nothing yet; one that writes does.
//
//rlp:holds D11
func TestReadersMakeNoHome(t *testing.T) {
	dir := t.TempDir()
	missing, empty := filepath.Join(dir, "missing"), filepath.Join(dir, "empty")
	used := filepath.Join(dir, "used")
	for _, d := range []string{empty, filepath.Join(used, "log")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	takes := map[string][]string{
		"rlp agent inspect": {"x"}, "rlp audit proof": {"1"}, "rlp audit show": {"x"}, "rlp caps diff": {"x"},
		"rlp caps explain": {"x", "kb:read:notes"}, "rlp caps lint": {dir}, "rlp caps show": {"x"}, "rlp caps suggest": {"x"},
		"rlp caps whatif": {"x"}, "rlp config get": {"log.days"}, "rlp kb get": {"notes", "x"}, "rlp kb list": {"notes"},
		"rlp kb search": {"notes", "x"}, "rlp kb why": {"notes", "x"}, "rlp lanes": {"wasm"},
		"rlp presets show": {"mcp-npx"}, "rlp runs cancel": {"x"},
		"rlp runs diff": {"x", "y"}, "rlp runs show": {"x"}, "rlp runs wait": {"x"},
	}
	made := func(command string) bool {
		t.Helper()
		entries, err := os.ReadDir(empty)
		_, there := os.Lstat(missing)
		if _, err := os.Lstat(filepath.Join(used, "tenants")); err == nil {
			return true
		}
		if err != nil || there == nil || len(entries) > 0 {
			return true
		}
		return false
	}
	var said bytes.Buffer
	do := func(home string, args ...string) int {
		said.Reset()
		return invoke(context.Background(), environment{
			args: append(args, "--home", home), env: os.Environ(), stdin: strings.NewReader(""), stdout: &said, stderr: &said,
		})
	}
	for _, path := range readers() {
		args := append(strings.Fields(path)[1:], takes[path]...)
		for _, home := range []string{missing, empty} {
			if status := do(home, args...); status == 2 && !strings.Contains(said.String(), "x") || made(path) {
				t.Fatalf("%s: %d, made: %v, said %s", path, status, made(path), &said)
			}
		}
		if status := do(used, append(args, "--tenant", "new")...); status == 2 && !strings.Contains(said.String(), "x") ||
			made(path) || strings.Contains(said.String(), "rlp-empty-home") {
			t.Fatalf("%s of a new tenant: %d, made: %v, said %s", path, status, made(path), &said)
		}
	}
	if status := do(missing, "launch", "x", "--dry-run"); made("launch --dry-run") {
		t.Errorf("a dry run made a home: %d %s", status, &said)
	}
	unused := filepath.Join(used, "tenants", "new")
	if status := do(used, "audit", "tail", "--tenant", "new"); status != 65 || !strings.Contains(said.String(), unused) {
		t.Errorf("audit tail: %d %s", status, &said)
	}
	if status := do(used, "audit", "key", "--tenant", "new"); status != 0 || !made("audit key") {
		t.Errorf("control: what makes a key made no tenant: %d %s", status, &said)
	}
	if err := os.RemoveAll(used); err != nil {
		t.Fatal(err)
	}
	if status := do(missing, "audit", "key"); status != 0 || !made("audit key") {
		t.Errorf("control: what makes a key made no home: %d %s", status, &said)
	}
}
