package lane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What became a link after it was granted is not what was granted, wherever on
// the way to it that is.
//
//rlp:holds K44
func TestWhatBecameALinkIsNotShown(t *testing.T) {
	test := func(t *testing.T, l Lane) {
		dir, elsewhere := openDir(t, 0o755), openDir(t, 0o755)
		put(t, filepath.Join(elsewhere, "secret"), "secret\n")
		if err := os.Chmod(filepath.Join(elsewhere, "secret"), 0o644); err != nil {
			t.Fatal(err)
		}
		c := shell(t, "cat "+dir+"/granted/* "+dir+"/on/way/*; cat "+dir+"/one")
		c.Folders = []Folder{
			{Path: dir + "/granted", Access: ReadOnly},
			{Path: dir + "/on/way", Access: ReadWrite},
			{Path: dir + "/one", Access: ReadOnly},
		}
		for _, p := range []string{"granted", "on/way"} {
			if err := os.MkdirAll(filepath.Join(dir, p), 0o755); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, p, "file"), "own\n")
			if err := os.Chmod(filepath.Join(dir, p, "file"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		put(t, dir+"/one", "own\n")
		if err := os.Chmod(dir+"/one", 0o644); err != nil {
			t.Fatal(err)
		}
		if r := run(t, l, c); string(r.Stdout.Data) != "own\nown\nown\n" {
			t.Fatalf("control: %s%s", r.Stdout.Data, r.Stderr.Data)
		}
		for name, to := range map[string]string{"granted": elsewhere, "on": filepath.Dir(elsewhere), "one": elsewhere +
			"/secret"} {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		c.Argv[2] = strings.ReplaceAll(c.Argv[2], "way", filepath.Base(elsewhere))
		c.Folders[1].Path = dir + "/on/" + filepath.Base(elsewhere)
		r, err := l.Run(t.Context(), c)
		if err == nil && len(r.Stdout.Data) > 0 {
			t.Errorf("%+v: %s", r, r.Stdout.Data)
		}
	}
	eachSandbox(t, func(t *testing.T, name string) { test(t, newLane(t, name)) })
	t.Run("container", func(t *testing.T) {
		if k := newContainer(t); k != nil {
			test(t, k)
		}
	})
}
