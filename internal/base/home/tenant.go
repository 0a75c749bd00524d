package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	artifacts = "artifacts"
	tenants   = "tenants"
)

// own refuses a tenant whose folder is another's. Two names that differ in case
// alone are two tenants; on a file system that does not tell them apart the one
// that came first keeps the folder.
func (h Home) own() error {
	if h.tenant == DefaultTenant {
		return nil
	}
	if h.tenant == "" || strings.ContainsAny(h.tenant, "./\\\x00") {
		return fmt.Errorf("%q is no tenant", h.tenant)
	}
	mine, err := os.Lstat(h.Root())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	swapped := otherCase(h.tenant)
	other, err := os.Lstat(filepath.Join(h.dir, tenants, swapped))
	if swapped == h.tenant || err != nil || !os.SameFile(mine, other) {
		return nil // the file system tells case apart
	}
	entries, err := os.ReadDir(filepath.Join(h.dir, tenants))
	if err != nil {
		return err
	}
	return exactly(entries, h.tenant)
}

// Tenants are the home as each tenant sees it that has a folder there, the default one first.
func (h Home) Tenants() []Home {
	list := []Home{{h.dir, DefaultTenant}}
	entries, _ := os.ReadDir(filepath.Join(h.dir, tenants)) // none is nothing
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, Home{h.dir, e.Name()})
		}
	}
	return list
}

// exactly refuses a tenant whose folder has another name than it has.
func exactly(entries []fs.DirEntry, tenant string) error {
	for _, e := range entries {
		if e.Name() == tenant {
			return nil
		}
	}
	for _, e := range entries {
		if strings.EqualFold(e.Name(), tenant) {
			return fmt.Errorf("the tenant %s is called %s here: this file system does not tell the two apart", tenant, e.Name())
		}
	}
	return nil
}

// otherCase is the name with the case of each letter changed; a name without
// letters is its own.
func otherCase(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, name)
}

// Foreign reports whether path, links resolved, lies among what belongs to
// another tenant of the home. What does not exist is judged by the part that does.
func (h Home) Foreign(path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return true // where it lies cannot be said
	}
	rel, err := filepath.Rel(h.dir, resolved(abs))
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	parts := strings.Split(rel, string(filepath.Separator))
	is := func(name string) bool { return strings.EqualFold(parts[0], name) }
	if is(tenants) {
		return len(parts) == 1 || parts[1] != h.tenant
	}
	pins := is("caps") && len(parts) > 1 && strings.EqualFold(parts[1], "mcp")
	log := strings.HasPrefix(strings.ToLower(parts[0]), logFiles)
	return h.tenant != DefaultTenant && (is(artifacts) || is(tokens) || pins || log || slices.ContainsFunc(kept, is))
}

// resolved is path with the links of the part that exists resolved.
func resolved(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
