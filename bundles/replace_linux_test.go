package bundles

import (
	"os"
	"path/filepath"
	"testing"
)

// On Linux the two change places, which is what leaves no moment without a
// bundle; moving one away first would not leave the old one at temp.
func TestReplaceExchanges(t *testing.T) {
	dir := t.TempDir()
	temp, built := filepath.Join(dir, "temp"), filepath.Join(dir, "built")
	tree{"x": "old"}.writeTo(t, built)
	tree{"x": "new"}.writeTo(t, temp)
	must(t, replace(temp, built))
	for path, want := range map[string]string{built: "new", temp: "old"} {
		if got, err := os.ReadFile(filepath.Join(path, "x")); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
}
