package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/build"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// scriptDir is where the scripts that specify the command line live.
const scriptDir = "cmd/rlp/testdata/script"

// A holder is a test that holds rows: its name as people say it, and the file
// it is in, from the root of the repository.
type holder struct{ name, file string }

// A finding is one annotation: who holds which rows, and where it is written.
type finding struct {
	holder
	pos string // file:line
	ids []string
}

// scan finds every annotation below root and returns the holders of each row.
// All refusals are returned, joined.
func scan(root fs.FS, rows []row) (map[string][]holder, error) {
	var found []finding
	var errs []error
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if skipDir(root, name) {
				return fs.SkipDir
			}
			return nil
		}
		more, err := scanFile(root, name)
		found = append(found, more...)
		if err != nil {
			errs = append(errs, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	held, err := index(found, rows)
	return held, errors.Join(append(errs, err, scriptsRun(root, found))...)
}

// scriptsRun refuses scripts that hold rows while no test runs scripts.
func scriptsRun(root fs.FS, found []finding) error {
	i := slices.IndexFunc(found, func(f finding) bool { return path.Ext(f.file) == ".txtar" })
	if i < 0 {
		return nil
	}
	dir, rel := path.Dir(path.Dir(scriptDir)), strings.TrimPrefix(scriptDir, "cmd/rlp/")
	tests, err := fs.Glob(root, dir+"/*_test.go")
	if err != nil {
		return err
	}
	for _, name := range tests {
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if bytes.Contains(data, []byte("testscript.")) && bytes.Contains(data, []byte(rel)) {
			return nil
		}
	}
	return fmt.Errorf("%s: holds rows, but no test of %s runs %s", found[i].pos, dir, rel)
}

// skipDir reports whether a directory holds nothing that `go test` runs: a
// module of its own among them. Scripts are below a testdata directory and are
// walked to all the same.
func skipDir(root fs.FS, name string) bool {
	base := path.Base(name)
	switch {
	case name == "." || strings.HasPrefix(scriptDir+"/", name+"/"):
		return false
	case base == "testdata" || base == "bin":
		return true
	}
	_, err := fs.Stat(root, name+"/go.mod")
	return err == nil || base[0] == '.' || base[0] == '_'
}

// scanFile returns the annotations of one file.
func scanFile(root fs.FS, name string) ([]finding, error) {
	isScript := path.Dir(name) == scriptDir && path.Ext(name) == ".txtar"
	if path.Ext(name) != ".go" && !isScript {
		return nil, nil
	}
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	if isScript {
		return scanScript(name, data)
	}
	found, err := scanGo(name, data)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if runs, err := isBuilt(root, name); err != nil || !runs {
		return nil, errors.Join(fmt.Errorf("%s: holds rows, but a plain `go test` does not build it", found[0].pos), err)
	}
	return found, nil
}

// isBuilt reports whether a plain `go test` on linux/amd64 builds the file.
func isBuilt(root fs.FS, name string) (bool, error) {
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled, ctx.BuildTags = "linux", "amd64", false, nil
	ctx.JoinPath = path.Join
	ctx.OpenFile = func(p string) (io.ReadCloser, error) {
		data, err := fs.ReadFile(root, p)
		return io.NopCloser(bytes.NewReader(data)), err
	}
	return ctx.MatchFile(path.Dir(name), path.Base(name))
}

// index turns annotations into the holders of each row, sorted, and refuses
// rows that there are not.
func index(found []finding, rows []row) (map[string][]holder, error) {
	known := make(map[string]bool, len(rows))
	for _, r := range rows {
		known[r.id] = true
	}
	held := make(map[string][]holder)
	var errs []error
	for _, f := range found {
		for i, id := range f.ids {
			switch {
			case !known[id]:
				errs = append(errs, fmt.Errorf("%s: %s: there is no row %q in docs/rows.tsv", f.pos, f.name, id))
			case slices.Contains(f.ids[:i], id):
				errs = append(errs, fmt.Errorf("%s: %s: row %s is named twice", f.pos, f.name, id))
			default:
				held[id] = append(held[id], f.holder)
			}
		}
	}
	for _, hs := range held {
		slices.SortFunc(hs, func(a, b holder) int {
			return strings.Compare(a.file+"\x00"+a.name, b.file+"\x00"+b.name)
		})
	}
	return held, errors.Join(errs...)
}
