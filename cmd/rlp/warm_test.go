package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// warm copies a cache into the home of a script, but of one that has a file
// "cold" and is about compiling.
func warm(work, home, cache string) error {
	if _, err := os.Stat(filepath.Join(work, "cold")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	to := filepath.Join(home, ".runloop", "cache")
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
