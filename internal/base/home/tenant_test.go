package home

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"
)

// What is another tenant's is known by where it lies, whatever way leads there.
//
//rlp:holds K73
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	open := func(tenant string) Home {
		h, err := Open(dir, tenant)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	standard, acme := open(DefaultTenant), open("acme")
	for _, path := range []string{acme.Artifacts(), acme.Work("a", "r"), open("acme_co").Artifacts()} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(acme.Root(), link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path                  string
		standard, acme, other bool // foreign to the default tenant, to acme, to acme_co
	}{
		{acme.Artifacts(), true, false, true},
		{filepath.Join(acme.Work("a", "r"), "not", "there"), true, false, true},
		{link + "/artifacts", true, false, true},
		{filepath.Join(dir, "audit.key"), false, true, true},
		{filepath.Join(acme.Root(), "Audit.pub"), true, false, true},
		{filepath.Join(standard.Root(), "tenants", "acme_co", "artifacts", "x"), true, true, false},
		{filepath.Join(dir, "tenants"), true, true, true},
		{filepath.Join(dir, "tenants", "ACME"), true, true, true},
		{standard.Artifacts(), false, true, true},
		{filepath.Join(dir, "agents", "writer"), false, true, true},
		{filepath.Join(dir, "kb"), false, true, true},
		{standard.Config(), false, false, false},
		{standard.Override("writer"), false, false, false},
		{dir + "-not/tenants/acme", false, false, false},
		{t.TempDir(), false, false, false},
	} {
		for h, want := range map[Home]bool{standard: c.standard, acme: c.acme, open("acme_co"): c.other} {
			if got := h.Foreign(c.path); got != want {
				t.Errorf("%s, to %s: foreign %v, want %v", c.path, h.Tenant(), got, want)
			}
		}
	}
}

// No name of a tenant leads to, or into, the folder of another.
func TestTenantsNeverNest(t *testing.T) {
	name := rapid.StringMatching(`[A-Za-z0-9_-]{1,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a := name.Draw(t, "a")
		b := rapid.OneOf(name, rapid.Map(name, func(s string) string { return a + s }), rapid.Just(otherCase(a))).Draw(t, "b")
		one, two := Home{"/h", a}, Home{"/h", b}
		if a == b {
			return
		}
		for _, pair := range [][2]string{{one.Root(), two.Root()}, {two.Root(), one.Root()}} {
			if pair[0] != "/h" && strings.HasPrefix(pair[1]+"/", pair[0]+"/") {
				t.Fatalf("%s lies in %s", pair[1], pair[0])
			}
		}
		if !two.Foreign(one.Artifacts()) || !one.Foreign(two.Journal()) || one.Foreign(one.Artifacts()) {
			t.Fatalf("%s and %s are not foreign to one another", a, b)
		}
	})
}

// Where the file system does not tell case apart, a tenant is not let into the
// folder of one whose name differs in case alone.
//
//rlp:holds K2
func TestTenantsThatDifferInCase(t *testing.T) {
	entries := func(names ...string) []fs.DirEntry {
		tree := fstest.MapFS{}
		for _, n := range names {
			tree[n+"/x"] = &fstest.MapFile{}
		}
		list, err := fs.ReadDir(tree, ".")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if err := exactly(entries("acme", "b"), "acme"); err != nil {
		t.Errorf("control: %v", err)
	}
	if err := exactly(entries("Acme", "b"), "acme"); err == nil || !strings.Contains(err.Error(), "called Acme") {
		t.Errorf("acme in the folder of Acme: %v", err)
	}
	for _, bad := range []string{"", "..", "a/b", "a.b"} {
		if _, err := Open(t.TempDir(), bad); err == nil {
			t.Errorf("the tenant %q has a folder", bad)
		}
	}
	dir := t.TempDir()
	for _, tenant := range []string{"Acme", "acme", "1-2_3"} { // this file system tells them apart, or Open refuses
		h, err := Open(dir, tenant)
		if err != nil {
			t.Logf("%v", err)
			continue
		}
		if err := Make(h.Artifacts()); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, tenant); err != nil {
			t.Errorf("%s, again: %v", tenant, err)
		}
	}
}
