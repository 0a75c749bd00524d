package access

import (
	"os"
	"strings"
)

func removeFile(path string) error { return os.Remove(path) }

// loosen lets others look.
func loosen(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Chmod(path, info.Mode().Perm()|0o044)
}

// edit changes a file in its place.
func edit(path, from, to string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Replace(string(data), from, to, 1)), 0o600)
}
