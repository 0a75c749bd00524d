package lane_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/lane"
)

// What became a link after it was granted is not what was granted, wherever on
// the way to it that is.
//
//rlp:holds K44
func TestWhatBecameALinkIsNotShown(t *testing.T) {
	test := func(t *testing.T, l lane.Lane) {
		dir, elsewhere := openDir(t, 0o755), openDir(t, 0o755)
		lane.Put(t, filepath.Join(elsewhere, "secret"), "secret\n")
		if err := os.Chmod(filepath.Join(elsewhere, "secret"), 0o644); err != nil {
			t.Fatal(err)
		}
		c := lane.Shell(t, "cat "+dir+"/granted/* "+dir+"/on/way/*; cat "+dir+"/one")
		c.Folders = []lane.Folder{
			{Path: dir + "/granted", Access: lane.ReadOnly},
			{Path: dir + "/on/way", Access: lane.ReadWrite},
			{Path: dir + "/one", Access: lane.ReadOnly},
		}
		for _, p := range []string{"granted", "on/way"} {
			if err := os.MkdirAll(filepath.Join(dir, p), 0o755); err != nil {
				t.Fatal(err)
			}
			lane.Put(t, filepath.Join(dir, p, "file"), "own\n")
			if err := os.Chmod(filepath.Join(dir, p, "file"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		lane.Put(t, dir+"/one", "own\n")
		if err := os.Chmod(dir+"/one", 0o644); err != nil {
			t.Fatal(err)
		}
		if r := lane.Run(t, l, c); string(r.Stdout.Data) != "own\nown\nown\n" {
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
	inSandboxes(t, test)
}
