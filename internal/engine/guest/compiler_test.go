package guest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/engine/guest/hostiletest"
)

// leftovers is all below dir, without dir and the folder of the format.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// attack compiles a module under a bound, in a cache that must be empty after.
func attack(ctx context.Context, t *testing.T, wasm []byte, b guest.Bound) (time.Duration, error) {
	t.Helper()
	dir := newCache(t)
	began := time.Now()
	mod, err := guest.Compile(ctx, guest.Config{
		Module: wasm, Name: "agent", Compiler: os.Executable, CacheDir: dir,
		Bound: b,
	})
	took := time.Since(began)
	if mod != nil {
		_ = mod.Close()
		t.Error("it was compiled")
	}
	if list := leftovers(t, dir); len(list) != 0 {
		t.Errorf("left %v", list)
	}
	return took, err
}

// What takes too long to compile is ended and refused.
//
//rlp:holds K73
func TestCompilingHasADeadline(t *testing.T) {
	took, err := attack(t.Context(), t, hostiletest.Nested("loops_left", 9000), guest.Bound{Time: 300 * time.Millisecond})
	if !errors.Is(err, guest.ErrModule) || !strings.Contains(err.Error(), "compiling it takes more than 300ms") {
		t.Error(err)
	}
	if took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// What takes too much memory to compile ends the compiler and not this process.
//
//rlp:holds K73
func TestCompilingHasAMemory(t *testing.T) {
	if guest.Slack > 1 {
		return // under the race detector a process needs many times its memory
	}
	_, err := attack(t.Context(), t, hostiletest.Switch(1000, 200_000), guest.Bound{Memory: 128 << 20, Time: time.Minute})
	if !errors.Is(err, guest.ErrModule) || !strings.Contains(err.Error(),
		"compiling it takes more than 128 MiB of memory") {
		t.Error(err)
	}
}

// Who gives up while a module is compiled does not wait for it.
func TestCompilingEndsWithTheContext(t *testing.T) {
	cause := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
	took, err := attack(ctx, t, hostiletest.Nested("loops_left", 9000), guest.Bound{Time: time.Minute})
	if !errors.Is(err, cause) || took > 5*time.Second {
		t.Errorf("%v after %s", err, took)
	}
}

// Without a program that compiles, or with one that does not answer as it
// should, what is large is not compiled at all.
func TestNothingLargeIsCompiledHere(t *testing.T) {
	wasm := cachedModule().bytes()
	for name, c := range map[string]func() (string, error){
		"none":    nil,
		"error":   func() (string, error) { return "", errors.New("nothing there") },
		"missing": func() (string, error) { return "/nonexistent/rlp", nil },
		"another": func() (string, error) { return "/bin/true", nil },
	} {
		_, err := guest.Compile(t.Context(), guest.Config{Module: wasm, Compiler: c})
		if !errors.Is(err, guest.ErrCompiler) || errors.Is(err, guest.ErrModule) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A cache that is none leaves the system's temporary folder as it was.
func TestCompilingWithoutACacheLeavesNothing(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", file} {
		mod, cached := compileCached(t, dir, cachedModule())
		if cached || (mod.CacheErr() == nil) != (dir == "") {
			t.Errorf("%q: %t, %v", dir, cached, mod.CacheErr())
		}
		if list, err := os.ReadDir(tmp); err != nil || len(list) != 0 {
			t.Errorf("%q: left %v, %v", dir, list, err)
		}
	}
}

// Of those who launch a module for the first time at once, one compiles it.
func TestOneCompilesForAll(t *testing.T) {
	dir := newCache(t)
	asked := make(chan struct{}, 8)
	compiler := func() (string, error) {
		asked <- struct{}{}
		return os.Executable()
	}
	var wg sync.WaitGroup
	for range cap(asked) {
		wg.Go(func() {
			mod, err := guest.Compile(t.Context(), guest.Config{
				Module: cachedModule().bytes(), Compiler: compiler,
				CacheDir: dir,
			})
			if err != nil {
				t.Error(err)
				return
			}
			_ = mod.Close()
		})
	}
	wg.Wait()
	if len(asked) != 1 {
		t.Errorf("%d compiled", len(asked))
	}
	onlyEntry(t, dir)
}

// Those who wait for a module that is refused are told so, and do not try it
// one after the other.
func TestOneRefusalIsForAll(t *testing.T) {
	bomb, asked := hostiletest.Nested("loops_left", 9000), make(chan struct{}, 6)
	dir := newCache(t)
	compiler := func() (string, error) {
		asked <- struct{}{}
		return os.Executable()
	}
	var wg sync.WaitGroup
	for range cap(asked) {
		wg.Go(func() {
			_, err := guest.Compile(t.Context(), guest.Config{
				Module: bomb, Compiler: compiler, CacheDir: dir,
				Bound: guest.Bound{Time: time.Second},
			})
			if !errors.Is(err, guest.ErrModule) || strings.Count(err.Error(),
				"module refused: compiling it takes more than 1s") != 1 {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(asked) != 1 {
		t.Errorf("%d compiled it", len(asked))
	}
	if list := leftovers(t, dir); len(list) != 0 {
		t.Errorf("left %v", list)
	}
}
