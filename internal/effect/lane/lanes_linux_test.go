package lane_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/lane/container"
)

// inSandboxes runs a test in each lane that shows programs a root of their own.
// What containers are without an engine, their own tests say.
func inSandboxes(t *testing.T, test func(t *testing.T, l lane.Lane)) {
	lane.EachSandbox(t, func(t *testing.T, name string) { test(t, lane.NewLane(t, name)) })
	if _, err := (container.Config{}).Lane(lane.Config{}); err != nil {
		return
	}
	t.Run("container", func(t *testing.T) {
		test(t, lane.NewLane(t, "container", func(c *lane.Config) { c.Container = container.Config{} }))
	})
}

// openDir is a folder that everybody may go to.
func openDir(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir := lane.Shared(t)
	file := lane.Put(t, filepath.Join(dir, "file"), "text\n")
	if err := errors.Join(os.Chmod(dir, mode), os.Chmod(file, 0o644)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A folder that may be read and holds what may not shows what else was there when
// the program began, and nothing that comes later: least of all what is denied.
//
//rlp:holds K13 K14 K44
func TestWhatIsDeniedInAFolderToReadIsNotThere(t *testing.T) {
	test := func(t *testing.T, l lane.Lane) {
		dir := openDir(t, 0o755)
		for _, d := range []string{dir + "/sub", dir + "/sub/other", dir + "/empty"} {
			if err := errors.Join(os.Mkdir(d, 0o755), os.Chmod(d, 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range []string{"sub/plain", "sub/other/deep", "sub/denied"} {
			if lane.Put(t, filepath.Join(dir, f), f+"\n"); os.Chmod(filepath.Join(dir, f), 0o644) != nil {
				t.Fatal(f)
			}
		}
		if err := errors.Join(os.Symlink("plain", dir+"/sub/link"), unix.Mkfifo(dir+"/sub/pipe", 0o644),
			os.Chmod(dir+"/sub/pipe", 0o644)); err != nil {
			t.Fatal(err)
		}
		signal := lane.Shared(t)
		if err := os.Chmod(signal, 0o777); err != nil {
			t.Fatal(err)
		}
		c := lane.Shell(t, "cd "+dir+"; ls . sub; cat sub/plain sub/other/deep sub/link; echo >"+signal+
			"/begun; until [ -e "+
			signal+"/made ]; do :; done; cat sub/denied sub/pipe sub/later later/key; ls . sub; echo x >sub/x; ls sub/other")
		c.Folders = []lane.Folder{
			{Path: dir, Access: lane.ReadOnly},
			{Path: signal, Access: lane.ReadWrite},
			{Path: dir + "/sub/denied", Access: lane.Hidden},
			{Path: dir + "/sub/pipe", Access: lane.Hidden},
			{Path: dir + "/sub/later", Access: lane.Hidden},
			{
				Path:   dir + "/later/key",
				Access: lane.Hidden,
			},
		}
		done := make(chan error, 1)
		go func() {
			for !lane.Exists(signal + "/begun") {
				lane.Pause()
			}
			put := func(p, text string) error {
				return errors.Join(os.WriteFile(p+".temp", []byte(text), 0o600), os.Chmod(p+".temp", 0o644),
					os.Rename(p+".temp", p))
			}
			err := errors.Join(put(dir+"/sub/later", "secret\n"), put(dir+"/sub/denied", "secret\n"), put(dir+"/sub/other/new",
				"new\n"), os.Mkdir(dir+"/later", 0o755))
			done <- errors.Join(err, os.Chmod(dir+"/later", 0o755), put(dir+"/later/key", "secret\n"), put(signal+"/made", ""))
		}()
		r := lane.Run(t, l, c)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		want := ".:\nempty\nfile\nsub\n\nsub:\nlink\nother\nplain\nsub/plain\nsub/other/deep\nsub/plain\n.:\nempty\nfile\nsub\n\nsub:\nlink\nother\nplain\ndeep\nnew\n"
		if l.Name() == "container" { // an engine makes none
			want = strings.ReplaceAll(strings.Replace(want, "deep\nsub/plain\n.", "deep\n.", 1), "link\n", "")
		}
		if out := string(r.Stdout.Data); out != want {
			t.Errorf("%+v\n%s\n%s\nwant\n%s", r, out, r.Stderr.Data, want)
		}
	}
	inSandboxes(t, test)
}

func TestAProcessIsSpokenWith(t *testing.T) {
	test := func(t *testing.T, l lane.Lane) {
		c := lane.Shell(t, `echo begun >&2; while read line; do echo "heard $line"; done; echo over; exit 3`)
		c.MaxOutput = 4
		p := lane.Started(t, t.Context(), l, c)
		out := bufio.NewReader(p.Stdout)
		for i := range 3 {
			fmt.Fprintf(p.Stdin, "word %d\n", i)
			if line, err := out.ReadString('\n'); err != nil || line != fmt.Sprintf("heard word %d\n", i) {
				t.Fatalf("%q %v", line, err)
			}
		}
		if err := p.Stdin.Close(); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(out)
		if err != nil || string(rest) != "over\n" {
			t.Errorf("%q %v", rest, err)
		}
		<-p.Done()
		r, err := p.End()
		if err != nil || r.ExitCode != 3 || string(p.Stderr().Data) != "begu" || !p.Stderr().Cut {
			t.Errorf("%+v %v %+v", r, err, p.Stderr())
		}
	}
	inSandboxes(t, test)
	test(t, lane.NewLane(t, "native"))
}
