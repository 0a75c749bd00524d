package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// warm copies a cache into the home of a script, but of one that has a file
// "cold" and is about compiling.
func warm(work, home, cache string) error {
	if _, err := os.Stat(filepath.Join(work, "cold")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return copyCache(filepath.Join(home, ".runloop"), cache)
}

// warmHome puts what is compiled into another home, or the part of a tenant in
// one, of a script that is not about compiling: warm DIR.
func warmHome(t *testing.T, probe string) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: warm DIR")
		}
		dir, tenant := ts.MkAbs(args[0]), "default"
		if filepath.Base(filepath.Dir(dir)) == "tenants" {
			tenant = filepath.Base(dir)
		}
		ts.Check(copyCache(dir, compiledFor(t, probe, tenant)))
	}
}

func copyCache(home, cache string) error {
	to := filepath.Join(home, "cache")
	return filepath.WalkDir(cache, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(cache, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o600)
	})
}
