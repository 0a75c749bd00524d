package bundles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is no bundle at all is answered with what to name.
func TestWhatIsNoBundleIsToldWhatToName(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "none"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(err.Error(),
		"name the folder or the archive of a bundle (rlp agent list shows what is installed)") {
		t.Errorf("nothing there: %v", err)
	}
	for name, text := range map[string]string{
		"t.wasm": "text", "a.txt": strings.Repeat("text\n", 500), "manifest.toml": "[agent]\n", "empty.tar": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenOrModule(path); err == nil || err.Error() != path+": "+noBundle {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "manifest.toml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("away", filepath.Join(dir, "link")); err != nil { // and many another thing that no bundle has
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "manifest.toml") ||
		!strings.Contains(err.Error(), "rlp agent build "+dir) {
		t.Errorf("a folder without a manifest: %v", err)
	}
	if err := os.Chmod(dir, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "as they do /tmp, leave it as it is") {
		t.Errorf("a shared folder: %v", err)
	}
}
