package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exits is a module whose _start ends the run with 7.
const exits = "\x00asm\x01\x00\x00\x00" +
	"\x01\x08\x02\x60\x01\x7f\x00\x60\x00\x00" +
	"\x02\x24\x01\x16wasi_snapshot_preview1\x09proc_exit\x00\x00" +
	"\x03\x02\x01\x01" +
	"\x05\x03\x01\x00\x01" +
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x01" +
	"\x0a\x08\x01\x06\x00\x41\x07\x10\x00\x0b"

func TestRun(t *testing.T) {
	dir := t.TempDir()
	wasm := filepath.Join(dir, "m.wasm")
	if err := os.WriteFile(wasm, []byte(exits), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options{cache: filepath.Join(dir, "cache"), log: filepath.Join(dir, "log"), args: []string{wasm}}
	for range 2 {
		if code, err := run(t.Context(), o); code != 7 || err != nil {
			t.Fatalf("exited with %d, %v", code, err)
		}
	}
	got, err := os.ReadFile(o.log)
	if err != nil || strings.Count(string(got), "\n") != 2 {
		t.Errorf("the log holds %q, %v", got, err)
	}
	found, err := filepath.Glob(filepath.Join(o.cache, "*", "*"))
	if err != nil || len(found) == 0 {
		t.Errorf("nothing was kept in the cache: %v", err)
	}
	for _, bad := range [][]string{nil, {filepath.Join(dir, "none")}} {
		if _, err := run(t.Context(), options{args: bad}); err == nil {
			t.Errorf("ran %q", bad)
		}
	}
}
