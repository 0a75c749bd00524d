//go:build unix

package bundles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"runloop.dev/rlp/internal/base/owner/ownertest"
)

// A directory bundle may not lead anywhere else. Each control reads what the
// link leads to as a reader would that opens files by their paths.
//
//rlp:holds R11
func TestDirectoryWithLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.MkdirAll(outside, 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "policy.caps"), []byte(testPolicy), 0o644))
	for _, c := range []struct {
		name, link, to, reads string
	}{
		{"policy out", "policy.caps", filepath.Join(outside, "policy.caps"), "policy.caps"},
		{"policy inside", "policy.caps", "other.caps", "policy.caps"},
		{"a folder", "sub", outside, "sub/policy.caps"},
		{"a folder inside", "sub", ".", "sub/other.caps"},
		{"a file that nothing uses", "unused", "other.caps", "unused"},
		{"dangling", "unused", "nowhere", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := goodTree().with("other.caps", testPolicy).dir(t)
			mustOpen(t, dir)
			if err := os.Remove(filepath.Join(dir, c.link)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			must(t, os.Symlink(c.to, filepath.Join(dir, c.link)))
			if c.reads != "" {
				if text, err := os.ReadFile(filepath.Join(dir, c.reads)); err != nil || string(text) != testPolicy {
					t.Fatalf("control: %q, %v", text, err)
				}
			}
			e := wantRefused(t, dir, "entry_type")
			if e.File != filepath.Join(dir, c.link) || !strings.Contains(e.Message, "symbolic link") {
				t.Errorf("%v", e)
			}
		})
	}
	// The path that the operator gives may be a link, and lead through one.
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(goodTree().dir(t), link))
	mustOpen(t, link)
}

func TestPipesDoNotBlock(t *testing.T) {
	for _, name := range []string{"agent.wasm", "policy.caps", "manifest.toml", "unused"} {
		dir := goodTree().without(name).dir(t)
		pipe := filepath.Join(dir, name)
		must(t, syscall.Mkfifo(pipe, 0o644))
		returns(t, func() { wantRefused(t, dir, "entry_type") })
		returns(t, func() { wantRefused(t, pipe, "entry_type") })
	}
	// Control: opening the pipe as files are opened waits.
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o644))
	opened := make(chan error, 1)
	go func() {
		f, err := os.Open(pipe)
		if err == nil {
			err = f.Close()
		}
		opened <- err
	}()
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the reader
	must(t, err)
	must(t, <-opened)
	must(t, w.Close())

	dir := goodTree().dir(t)
	must(t, syscall.Mknod(filepath.Join(dir, "sock"), syscall.S_IFSOCK|0o644, 0))
	wantRefused(t, dir, "entry_type")
	wantRefused(t, "/dev/null", "entry_type")
}

func returns(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
}

// What another user could have written is not the operator's bundle.
func TestWritableByOthers(t *testing.T) {
	for _, name := range []string{".", "agent.wasm", "policy.caps", "manifest.toml", "sub", "sub/unused"} {
		for _, mode := range []fs.FileMode{0o020, 0o002, 0o022, fs.ModeSticky | 0o002} {
			dir := goodTree().with("sub/unused", "x").dir(t)
			mustOpen(t, dir)
			path := filepath.Join(dir, name)
			info, err := os.Stat(path)
			must(t, err)
			if mode == 0o020 {
				must(t, ownertest.Share(path, info.Mode()|mode))
			} else {
				must(t, os.Chmod(path, info.Mode()|mode))
			}
			e := wantRefused(t, dir, "owner")
			if e.File != path || !strings.Contains(e.Hint, "chmod") {
				t.Errorf("%s: %v", name, e)
			}
		}
	}
	file := archive(t, goodTree().tar(t))
	mustOpen(t, file)
	must(t, os.Chmod(file, 0o666))
	wantRefused(t, file, "owner")
}

func TestOwnedByAnother(t *testing.T) {
	dir := goodTree().dir(t)
	mustOpen(t, dir)
	if err := os.Chown(filepath.Join(dir, "policy.caps"), 12345, -1); err != nil {
		// Only root gives files away; anybody else meets root's as their own.
		mustOpenOwned(t)
		return
	}
	wantRefused(t, dir, "owner")
}

// mustOpenOwned checks the rule on what Stat tells, where no file can be given
// away.
func mustOpenOwned(t *testing.T) {
	t.Helper()
	info, err := os.Stat("/")
	must(t, err)
	if err := checkOwner("x", nil, info); err != nil {
		t.Errorf("what is root's is refused: %v", err)
	}
	stat := *info.Sys().(*syscall.Stat_t)
	stat.Uid = uint32(os.Geteuid()) + 1
	if err := checkOwner("x", nil, fakeInfo{info, &stat}); err == nil {
		t.Error("what is another user's is accepted")
	}
}

type fakeInfo struct {
	fs.FileInfo
	stat *syscall.Stat_t
}

func (f fakeInfo) Sys() any { return f.stat }

func TestOwnerRule(t *testing.T) { mustOpenOwned(t) }

// Modes, owners and times do not enter what is read from an archive, nor the
// digest of a directory.
func TestModesDoNotCount(t *testing.T) {
	dir := goodTree().dir(t)
	before := mustOpen(t, dir).Digest
	must(t, os.Chmod(filepath.Join(dir, "agent.wasm"), 0o755))
	must(t, os.Chtimes(filepath.Join(dir, "agent.wasm"), time.Unix(1, 0), time.Unix(1, 0)))
	if after := mustOpen(t, dir).Digest; after != before {
		t.Error("the digest changed")
	}
}

// The module is replaced between verification and use: what is used is what
// was verified.
//
//rlp:holds R88
func TestReplacedAfterVerification(t *testing.T) {
	const evil = testWasm + "\x00\x05\x04evil"
	dir := goodTree().dir(t)
	module := filepath.Join(dir, "agent.wasm")
	b := mustOpen(t, dir)
	must(t, os.WriteFile(module, []byte(evil), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "policy.caps"), []byte("[capabilities]\nexec = true\n"), 0o644))
	// Control: who reads again gets the other module.
	if again, err := os.ReadFile(module); err != nil || hexSum(string(again)) == b.WasmSHA256 {
		t.Fatalf("control: %v", err)
	}
	if hexSum(string(b.Wasm)) != b.Manifest.Entry.SHA256 || string(b.Wasm) != testWasm || string(b.Policy) != testPolicy {
		t.Error("what is used is not what was verified")
	}
	wantRefused(t, dir, "digest_mismatch")
	must(t, os.RemoveAll(dir))
	if string(b.Wasm) != testWasm || b.WasmSHA256 != hexSum(testWasm) {
		t.Error("the bundle went back to the disk")
	}
}

// Files are replaced, by others, by links and by folders, all the while that
// the bundle is opened: every bundle that comes out is wholly the one that its
// manifest means.
//
//rlp:holds R88
func TestReplacedWhileOpening(t *testing.T) {
	dir := goodTree().dir(t)
	outside := filepath.Join(t.TempDir(), "evil.wasm")
	must(t, os.WriteFile(outside, []byte(testWasm+"\x00\x05\x04evil"), 0o644))
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		module, temp := filepath.Join(dir, "agent.wasm"), filepath.Join(filepath.Dir(dir), "temp")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			var err error
			switch i % 4 {
			case 1:
				err = os.Symlink(outside, temp)
			case 3:
				err = os.WriteFile(temp, []byte(testWasm+"\x00\x05\x04evil"), 0o644)
			default:
				err = os.WriteFile(temp, []byte(testWasm), 0o644)
			}
			if err == nil {
				err = os.Rename(temp, module)
			}
			if err != nil {
				panic(fmt.Sprintf("replacing the module: %v", err))
			}
		}
	})
	accepted, refused := 0, 0
	for deadline := time.Now().Add(30 * time.Second); accepted < 300 || refused < 300; {
		if time.Now().After(deadline) {
			t.Errorf("control: %d were accepted and %d refused, the race did not happen", accepted, refused)
			break
		}
		b, err := Open(dir)
		if err != nil {
			refused++
			continue
		}
		accepted++
		if string(b.Wasm) != testWasm {
			t.Error("another module came through")
		}
	}
	close(stop)
	swapper.Wait()
}

// What was looked at and what was opened are two things: a file that another
// one, a link or a pipe took the place of in between is not read.
func TestReplacedBetweenLookAndOpen(t *testing.T) {
	dir := t.TempDir()
	tree{"a": "1", "b": "2"}.writeTo(t, dir)
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	must(t, os.Symlink("b", filepath.Join(dir, "link")))
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	info, err := root.Lstat("a")
	must(t, err)
	for _, name := range []string{"a", "b", "pipe", "link"} {
		d := &dirReader{files: map[string][]byte{}, left: MaxTotal}
		var err error
		returns(t, func() { err = d.file(root, "x", name, info) })
		if want := name == "a"; (err == nil) != want || (d.files["x"] != nil) != want {
			t.Errorf("%s in the place of a: %q, %v", name, d.files["x"], err)
		}
	}
}

func TestUnreadable(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := Open(missing); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("%v", err)
	}
	loop := filepath.Join(t.TempDir(), "loop")
	must(t, os.Symlink(loop, loop))
	if _, err := Open(loop); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("%v", err)
	}
	wantRefused(t, "oci://registry.example.com/writer:1", "unsupported")
}

// The bounds and names of an archive hold for a directory.
func TestDirectoryBounds(t *testing.T) {
	dir := goodTree().dir(t)
	for _, name := range []string{"a:b", "con", "x.", "cafe\u0301", "a\nb", "a\\b"} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, nil, 0o644))
		wantRefused(t, dir, "entry_name")
		must(t, os.Remove(path))
	}
	must(t, os.WriteFile(filepath.Join(dir, "Policy.caps"), nil, 0o644))
	wantRefused(t, dir, "entry_duplicate")
	must(t, os.Remove(filepath.Join(dir, "Policy.caps")))
	mustOpen(t, dir)

	must(t, os.Truncate(filepath.Join(dir, "manifest.toml"), 64<<20))
	wantRefused(t, dir, "size")
	must(t, os.WriteFile(filepath.Join(dir, "manifest.toml"), []byte(goodTree()["manifest.toml"]), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "huge"), nil, 0o644))
	must(t, os.Truncate(filepath.Join(dir, "huge"), MaxTotal+1))
	wantRefused(t, dir, "size")
	must(t, os.Remove(filepath.Join(dir, "huge")))
	mustOpen(t, dir)

	must(t, os.Mkdir(filepath.Join(dir, "n"), 0o755))
	for i := range MaxEntries - 4 {
		must(t, os.WriteFile(filepath.Join(dir, "n", fmt.Sprint(i)), nil, 0o644))
	}
	mustOpen(t, dir)
	must(t, os.WriteFile(filepath.Join(dir, "n", "more"), nil, 0o644))
	wantRefused(t, dir, "archive_limit")
}

func TestReadSized(t *testing.T) {
	for _, size := range []int64{0, 1, 5, 100} { // what Stat said, beside what is there
		got, err := readSized(strings.NewReader("hello"), size, 100)
		if err != nil || string(got) != "hello" {
			t.Errorf("size %d: %q, %v", size, got, err)
		}
	}
	for _, size := range []int64{0, 4, 5} {
		if _, err := readSized(strings.NewReader("hello"), size, 4); err == nil {
			t.Errorf("size %d: five bytes of four were read", size)
		}
	}
	if _, err := readSized(io1{}, 1, 10); err == nil {
		t.Error("an error of the reader was lost")
	}
}

type io1 struct{}

func (io1) Read([]byte) (int, error) { return 0, fs.ErrInvalid }
