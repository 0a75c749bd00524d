package guest_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"runloop.dev/rlp/internal/engine/guest"
)

// cachedModule is large enough to be worth caching.
func cachedModule() module { return module{pages: 1, pad: 2 << 10} }

// compileCached compiles and runs in dir, and says whether the cache served.
func compileCached(t *testing.T, dir string, m module) (*guest.Module, bool) {
	t.Helper()
	mod := compile(t, guest.Config{Module: m.bytes(), CacheDir: dir, MemoryBytes: 1 << 20})
	if end := mod.Run(t.Context(), guest.RunConfig{Wall: wide}); end.Kind != guest.OK {
		t.Errorf("%+v", end)
	}
	return mod, mod.Cached()
}

// The files of what is kept of a module, beside the native code.
const outlineFile, sumFile = "outline.wasm", "sum"

// entries is every file of native code below dir.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process was faster
		}
		if err == nil && !d.IsDir() && d.Name() != outlineFile && d.Name() != sumFile {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func onlyEntry(t *testing.T, dir string) string {
	t.Helper()
	list := entries(t, dir)
	if len(list) != 1 {
		t.Fatalf("the cache holds %v", list)
	}
	return list[0]
}

func newCache(t *testing.T) string { return filepath.Join(t.TempDir(), "cache") }

func TestCacheServesTheSecondTime(t *testing.T) {
	dir := newCache(t)
	if _, cached := compileCached(t, dir, cachedModule()); cached {
		t.Error("the first time")
	}
	if _, cached := compileCached(t, dir, cachedModule()); !cached {
		t.Error("not the second time")
	}
	other := cachedModule()
	other.pages = 2
	if _, cached := compileCached(t, dir, other); cached {
		t.Error("another module")
	}
	if n := len(entries(t, dir)); n != 2 {
		t.Errorf("%d files", n)
	}
	for _, p := range entries(t, dir) {
		for ; p != filepath.Dir(dir); p = filepath.Dir(p) {
			if info, err := os.Lstat(p); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v, %v", p, info.Mode(), err)
			}
		}
	}
}

func TestSmallModulesAreNotCached(t *testing.T) {
	dir := newCache(t)
	if _, cached := compileCached(t, dir, module{pages: 1}); cached {
		t.Error("cached")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// A file that others could have written, or that is not what it should be, is
// never read: it is removed and the module compiled anew.
func TestFilesThatCannotBeTrusted(t *testing.T) {
	swap := func(p string, put func(moved string) error) error {
		moved := p + ".moved"
		return errors.Join(os.Rename(p, moved), put(moved))
	}
	beside := func(p, name string) string { return filepath.Join(filepath.Dir(filepath.Dir(p)), name) }
	for name, spoil := range map[string]func(p string) error{
		"group can write":  func(p string) error { return os.Chmod(p, 0o660) },
		"others can write": func(p string) error { return os.Chmod(p, 0o602) },
		"symlink":          func(p string) error { return swap(p, func(m string) error { return os.Symlink(m, p) }) },
		"hard link":        func(p string) error { return os.Link(p, filepath.Join(filepath.Dir(p), "second")) },
		"directory":        func(p string) error { return swap(p, func(string) error { return os.Mkdir(p, 0o700) }) },
		"open directory":   func(p string) error { return os.Chmod(filepath.Dir(p), 0o755) },
		"truncated":        func(p string) error { return os.Truncate(p, 20) },
		"empty":            func(p string) error { return os.Truncate(p, 0) },
		"another version":  func(p string) error { return change(p, 8) },
		"not native code":  func(p string) error { return change(p, 0) },
		"flipped bit":      flipCode,
		"moved function":   flipOffset,
		"no checksum":      func(p string) error { return os.Remove(beside(p, sumFile)) },
		"open checksum":    func(p string) error { return os.Chmod(beside(p, sumFile), 0o666) },
		"other checksum":   func(p string) error { return change(beside(p, sumFile), 0) },
		"no module":        func(p string) error { return os.Remove(beside(p, outlineFile)) },
		"open module":      func(p string) error { return os.Chmod(beside(p, outlineFile), 0o666) },
		"flipped module":   func(p string) error { return flipCode(beside(p, outlineFile)) },
		"short module":     func(p string) error { return os.Truncate(beside(p, outlineFile), 100) },
		"original module": func(p string) error {
			return os.WriteFile(beside(p, outlineFile), cachedModule().bytes(),
				0o600)
		},
		"linked module": func(p string) error {
			return swap(beside(p, outlineFile), func(m string) error { return os.Symlink(m, beside(p, outlineFile)) })
		},
		"something else": func(p string) error { return os.WriteFile(beside(p, "else"), nil, 0o600) },
		"another's code": func(p string) error { return os.Rename(p, filepath.Join(filepath.Dir(p), "other")) },
		"open to all":    func(p string) error { return os.Chmod(beside(p, "."), 0o755) },
	} {
		dir := newCache(t)
		compileCached(t, dir, cachedModule())
		p := onlyEntry(t, dir)
		if _, cached := compileCached(t, dir, cachedModule()); !cached {
			t.Errorf("%s: control: not cached", name)
		}
		if err := spoil(p); err != nil {
			t.Fatal(err)
		}
		mod, cached := compileCached(t, dir, cachedModule())
		if cached || mod.CacheErr() != nil {
			t.Errorf("%s: cached: %t, %v", name, cached, mod.CacheErr())
		}
		if _, cached := compileCached(t, dir, cachedModule()); !cached {
			t.Errorf("%s: not cached again", name)
		}
		info, err := os.Lstat(p)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: left %v, %v", name, info, err)
		}
	}
}

func change(p string, at int) error {
	b, err := os.ReadFile(p)
	if err != nil {
		return err
	}
	b[at] ^= 0xff
	return os.WriteFile(p, b, 0o600)
}

// flipCode flips one bit in the middle of the native code.
func flipCode(p string) error {
	info, err := os.Stat(p)
	if err != nil {
		return err
	}
	return change(p, int(info.Size())/2)
}

// flipOffset makes the first function begin a byte later.
func flipOffset(p string) error {
	b, err := os.ReadFile(p)
	if err != nil {
		return err
	}
	const tag, count = 6, 4
	return change(p, tag+1+int(b[tag])+count)
}

// The engine itself takes a file whose functions begin elsewhere.
func TestControlTheEngineDoesNotSeeAMovedFunction(t *testing.T) {
	dir := newCache(t)
	m := cachedModule()
	compileCached(t, dir, m)
	p := onlyEntry(t, dir)
	if err := flipOffset(p); err != nil {
		t.Fatal(err)
	}
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Dir(filepath.Dir(p)))
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close(t.Context())
	rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache))
	defer rt.Close(t.Context())
	short, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(p)), outlineFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.CompileModule(t.Context(), short); err != nil {
		t.Errorf("the engine refused it: %v", err)
	}
	onlyEntry(t, dir) // and it was this file that it took
}

func TestDirectoriesThatCannotBeTrustedAreNotUsed(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{open, file, link} {
		for range 2 {
			mod, cached := compileCached(t, dir, cachedModule())
			if cached || !errors.Is(mod.CacheErr(), guest.ErrCache) {
				t.Errorf("%s: cached: %t, %v", dir, cached, mod.CacheErr())
			}
		}
	}
	if list := entries(t, open); len(list) != 0 {
		t.Errorf("wrote %v", list)
	}
}

// The engine's version in the cache's name is the one that is built in.
func TestCacheIsKeyedByTheEnginesVersion(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(mod), "github.com/tetratelabs/wazero ")
	version := strings.Fields(rest)[0]
	dir := newCache(t)
	compileCached(t, dir, cachedModule())
	if p := onlyEntry(t, dir); !strings.Contains(p, "-wazero-"+version+"/") {
		t.Errorf("%s is not named by %s", p, version)
	}
}

// What a process left behind that was killed as it compiled is removed by the
// next that compiles, when it cannot be anybody's any more.
func TestLeftoversAreRemovedWhenOld(t *testing.T) {
	dir := newCache(t)
	compileCached(t, dir, cachedModule())
	base := filepath.Dir(filepath.Dir(filepath.Dir(onlyEntry(t, dir))))
	old, fresh := filepath.Join(base, "new-1.tmp"), filepath.Join(base, "new-2.tmp")
	for _, f := range []string{old, fresh} {
		if err := os.Mkdir(f, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	claim := filepath.Join(base, "1.claim.tmp")
	if err := os.WriteFile(claim, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	if err := errors.Join(os.Chtimes(old, past, past), os.Chtimes(claim, past, past)); err != nil {
		t.Fatal(err)
	}
	other := cachedModule()
	other.pages = 2
	compileCached(t, dir, other)
	list, err := filepath.Glob(filepath.Join(base, "*.tmp"))
	if err != nil || len(list) != 1 || list[0] != fresh {
		t.Errorf("left %v, %v", list, err)
	}
}

const cacheEnv = "RLP_TEST_CACHE"

// Processes that compile the same module at once, in one cache, all succeed,
// and leave one whole file.
func TestProcessesShareACache(t *testing.T) {
	if dir := os.Getenv(cacheEnv); dir != "" {
		for range 20 {
			compileCached(t, dir, cachedModule())
			if list := entries(t, dir); len(list) > 0 && len(list)%3 == 0 { // spoil it for the others, too
				_ = os.Truncate(list[0], 30)
			}
		}
		return
	}
	dir := newCache(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestProcessesShareACache$")
			cmd.Env = append(os.Environ(), cacheEnv+"="+dir)
			if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("FAIL")) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	for range 2 {
		compileCached(t, dir, cachedModule())
	}
	if _, cached := compileCached(t, dir, cachedModule()); !cached {
		t.Error("not cached in the end")
	}
	onlyEntry(t, dir)
}
