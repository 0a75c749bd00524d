// Package kbtest holds what every knowledge base must do, as one function, and
// the smallest thing that does it.
package kbtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"runloop.dev/rlp/kb"
)

// A KB is what [kb.View] offers of values.
type KB interface {
	Get(ctx context.Context, domain, key string) (kb.Value, error)
	Put(ctx context.Context, domain, key string, value []byte) (uint64, error)
	CAS(ctx context.Context, domain, key string, value []byte, revision uint64) (uint64, error)
	Delete(ctx context.Context, domain, key string) error
	List(ctx context.Context, domain, prefix string) iter.Seq2[kb.Entry, error]
}

// TestStore runs the suite. Each call of open returns a KB of its own, empty,
// that writes as origin.
func TestStore(t *testing.T, open func(t *testing.T, origin kb.Origin) KB) {
	for name, test := range map[string]func(*testing.T, KB){
		"values": testValues, "compare and swap": testCAS, "revisions": testRevisions, "rules": testRules,
		"list": testList, "origin": testOrigin, "concurrent swaps": testConcurrent, "separate keys": testSeparate,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t, testedOrigin())) })
	}
}

func testedOrigin() kb.Origin {
	return kb.Origin{Agent: "writer", Run: "run-1", Source: "file:/notes/a.md", Label: "untrusted"}
}

func testValues(t *testing.T, k KB) {
	ctx := t.Context()
	if _, err := k.Get(ctx, "notes", "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("get of nothing: %v", err)
	}
	for _, v := range [][]byte{[]byte("one"), {}, bytes.Repeat([]byte{0, 255}, 1<<19), []byte("two")} {
		rev := must(k.Put(ctx, "notes", "a", v))(t)
		got := must(k.Get(ctx, "notes", "a"))(t)
		if !bytes.Equal(got.Bytes, v) || got.Revision != rev || got.Bytes == nil {
			t.Fatalf("put %d bytes at revision %d, got %d bytes at %d", len(v), rev, len(got.Bytes), got.Revision)
		}
	}
	if err := k.Delete(ctx, "notes", "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Get(ctx, "notes", "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("get after delete: %v", err)
	}
	if err := k.Delete(ctx, "notes", "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("delete of nothing: %v", err)
	}
}

func testCAS(t *testing.T, k KB) {
	ctx := t.Context()
	if _, err := k.CAS(ctx, "notes", "a", []byte("x"), 7); !errors.Is(err, kb.ErrConflict) {
		t.Fatalf("swap of nothing at revision 7: %v", err)
	}
	rev := must(k.CAS(ctx, "notes", "a", []byte("x"), 0))(t)
	if _, err := k.CAS(ctx, "notes", "a", []byte("y"), 0); !errors.Is(err, kb.ErrConflict) {
		t.Fatalf("swap of something as nothing: %v", err)
	}
	next := must(k.CAS(ctx, "notes", "a", []byte("y"), rev))(t)
	if _, err := k.CAS(ctx, "notes", "a", []byte("z"), rev); !errors.Is(err, kb.ErrConflict) {
		t.Fatalf("swap at an old revision: %v", err)
	}
	if got := must(k.Get(ctx, "notes", "a"))(t); string(got.Bytes) != "y" || got.Revision != next {
		t.Fatalf("after the swaps: %q at %d, want y at %d", got.Bytes, got.Revision, next)
	}
}

func testRevisions(t *testing.T, k KB) {
	ctx := t.Context()
	seen := map[uint64]bool{0: true}
	first := must(k.Put(ctx, "notes", "a", []byte("1")))(t)
	if err := k.Delete(ctx, "notes", "a"); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		rev := must(k.Put(ctx, "notes", string(rune('a'+i%3)), []byte("1")))(t)
		if seen[rev] || rev == first {
			t.Fatalf("revision %d was given out twice", rev)
		}
		seen[rev] = true
	}
	// What was deleted and made again is not what it was.
	if _, err := k.CAS(ctx, "notes", "a", []byte("2"), first); !errors.Is(err, kb.ErrConflict) {
		t.Fatalf("swap at the revision of a deleted value: %v", err)
	}
}

func testRules(t *testing.T, k KB) {
	ctx := t.Context()
	for _, d := range []string{"", "nowhere", "Notes", "notes_raw"} {
		if _, err := k.Put(ctx, d, "a", nil); !errors.Is(err, kb.ErrDomain) {
			t.Errorf("put in domain %q: %v", d, err)
		}
		if _, err := k.Get(ctx, d, "a"); !errors.Is(err, kb.ErrDomain) {
			t.Errorf("get in domain %q: %v", d, err)
		}
		for _, err := range k.List(ctx, d, "") {
			if !errors.Is(err, kb.ErrDomain) {
				t.Errorf("list of domain %q: %v", d, err)
			}
		}
	}
	for name, key := range map[string]string{
		"empty": "", "long": strings.Repeat("k", 1025), "NUL": "a\x00b",
		"not UTF-8": "a\xff",
	} {
		if _, err := k.Put(ctx, "notes", key, nil); !errors.Is(err, kb.ErrInvalid) {
			t.Errorf("put at a key that is %s: %v", name, err)
		}
		if err := k.Delete(ctx, "notes", key); !errors.Is(err, kb.ErrInvalid) {
			t.Errorf("delete of a key that is %s: %v", name, err)
		}
	}
	must(k.Put(ctx, "notes", strings.Repeat("k", 1024), make([]byte, 1<<20)))(t) // the control: just within
	if _, err := k.Put(ctx, "notes", "a", make([]byte, 1<<20+1)); !errors.Is(err, kb.ErrInvalid) ||
		!strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("put of 1 MiB and a byte: %v", err)
	}
}

func testList(t *testing.T, k KB) {
	ctx := t.Context()
	want := []string{}
	for i := range 2500 {
		key := fmt.Sprintf("p/%d", i)
		must(k.Put(ctx, "notes", key, make([]byte, i%7)))(t)
		want = append(want, key)
	}
	for _, other := range []string{"p", "q/1", "P/1", "p0"} {
		must(k.Put(ctx, "notes", other, nil))(t)
	}
	must(k.Put(ctx, "contacts", "p/x", nil))(t)
	slices.Sort(want)
	var got []string
	for e, err := range k.List(ctx, "notes", "p/") {
		if err != nil {
			t.Fatal(err)
		}
		var n int
		fmt.Sscanf(e.Key, "p/%d", &n)
		if e.Size != n%7 || e.Revision == 0 {
			t.Fatalf("entry %+v", e)
		}
		got = append(got, e.Key)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("listed %d keys, want %d", len(got), len(want))
	}
	for e := range k.List(ctx, "notes", "") {
		if e.Key != "P/1" {
			t.Fatalf("the first key is %q", e.Key)
		}
		break
	}
}

func testOrigin(t *testing.T, k KB) {
	ctx := t.Context()
	must(k.Put(ctx, "notes", "a", []byte("v")))(t)
	got := must(k.Get(ctx, "notes", "a"))(t).Origin
	want := testedOrigin()
	want.Tenant, want.UnixMS = got.Tenant, got.UnixMS
	if got != want || got.Tenant == "" || got.UnixMS == 0 {
		t.Fatalf("origin %+v, want %+v with tenant and time", got, want)
	}
}

func testConcurrent(t *testing.T, k KB) {
	ctx := t.Context()
	const workers, each = 8, 25
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for done := 0; done < each; {
				v, err := k.Get(ctx, "notes", "n")
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
					return
				}
				_, err = k.CAS(ctx, "notes", "n", append(v.Bytes, 'x'), v.Revision)
				switch {
				case err == nil:
					done++
				case !errors.Is(err, kb.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := must(k.Get(ctx, "notes", "n"))(t); len(got.Bytes) != workers*each {
		t.Fatalf("%d swaps succeeded and %d are to be seen", workers*each, len(got.Bytes))
	}
}

// testSeparate: no two (domain, key) pairs are one place.
func testSeparate(t *testing.T, k KB) {
	ctx := t.Context()
	pairs := [][2]string{
		{"notes", "a"},
		{"notes", "aa"},
		{"notes", "a/"},
		{"drafts", "a"},
		{"notes", "é"},
		{"notes", "e\u0301"},
	}
	for i, p := range pairs {
		must(k.Put(ctx, p[0], p[1], []byte{byte(i)}))(t)
	}
	for i, p := range pairs {
		if got := must(k.Get(ctx, p[0], p[1]))(t); got.Bytes[0] != byte(i) {
			t.Errorf("%v holds the value of %v", p, pairs[got.Bytes[0]])
		}
	}
}

// must returns a function that fails the test on an error and returns the value otherwise.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
