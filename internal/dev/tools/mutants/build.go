package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed support.go.txt
var support string

// A pkg is one package under test.
type pkg struct {
	ImportPath, Dir, Name              string
	GoFiles, TestImports, XTestImports []string
}

// flags keep the tests of a package from writing into its folder what they found.
func (p pkg) flags() []string {
	const rapid = "pgregory.net/rapid"
	if slices.Contains(p.TestImports, rapid) || slices.Contains(p.XTestImports, rapid) {
		return []string{"-rapid.nofailfile", "-rapid.checks=500"} // a fifth of it in short
	}
	return nil
}

// A build holds every mutant of the packages, in one binary of tests each.
type build struct {
	root, work string
	packages   []pkg
	files      []*mutator
	dropped    map[int]bool // those that do not compile
	total      int
}

func list(root string, patterns []string) ([]pkg, error) {
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Name,GoFiles,TestImports,XTestImports"},
		patterns...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	var pkgs []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p pkg
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
	return pkgs, nil
}

func newBuild(root, work string, packages []pkg) (*build, error) {
	b := &build{root: root, work: work, packages: packages, dropped: map[int]bool{}, total: 1}
	for _, p := range packages {
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			src, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			short, err := filepath.Rel(root, path)
			if err != nil {
				return nil, err
			}
			m, err := mutate(filepath.ToSlash(short), src, b.total)
			if err != nil {
				return nil, err
			}
			b.total = m.next
			b.files = append(b.files, m)
		}
	}
	return b, b.settle()
}

// settle leaves out what the compiler refuses, until it refuses nothing.
func (b *build) settle() error {
	for range 12 {
		if err := b.write(); err != nil {
			return err
		}
		args := []string{"build", "-gcflags=-e", "-overlay", b.overlay()}
		for _, p := range b.packages {
			args = append(args, p.ImportPath)
		}
		cmd := exec.Command("go", args...)
		cmd.Dir = b.root
		out, err := cmd.CombinedOutput()
		if err == nil {
			return nil
		}
		before := len(b.dropped)
		b.drop(string(out))
		if len(b.dropped) == before {
			return fmt.Errorf("building the mutants: %w\n%s", err, out)
		}
	}
	return fmt.Errorf("the mutants do not compile in twelve rounds")
}

var place = regexp.MustCompile(`(?m)^([^\s:]+\.go):(\d+):(?:\d+:)? `)

func (b *build) drop(output string) {
	for _, at := range place.FindAllStringSubmatch(output, -1) {
		line, _ := strconv.Atoi(at[2])
		for i, m := range b.files {
			if !b.isFile(at[1], i) {
				continue
			}
			for _, mut := range m.mutants {
				if mut.line <= line && line <= mut.end && mut.end-mut.line < 12 {
					b.dropped[mut.id] = true
				}
			}
		}
	}
}

// isFile reports whether the compiler means the i-th file.
func (b *build) isFile(path string, i int) bool {
	return strings.HasSuffix(filepath.ToSlash(path), b.files[i].path) || filepath.Base(path) == filepath.Base(b.written(i))
}

func (b *build) overlay() string      { return filepath.Join(b.work, "overlay.json") }
func (b *build) written(i int) string { return filepath.Join(b.work, fmt.Sprintf("file%d.go", i)) }

// write makes the files that replace the module's own.
func (b *build) write() error {
	replace := map[string]string{}
	for i, m := range b.files {
		if err := os.WriteFile(b.written(i), m.source(b.dropped), 0o600); err != nil {
			return err
		}
		replace[filepath.Join(b.root, m.path)] = b.written(i)
	}
	for i, p := range b.packages {
		path := filepath.Join(b.work, fmt.Sprintf("support%d.go", i))
		text := strings.Replace(support, "PACKAGE", p.Name, 1)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		replace[filepath.Join(p.Dir, "zz_rlp_mutants.go")] = path
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(b.overlay(), data, 0o600)
}

// tests builds the tests of a package. It is empty where there are none.
func (b *build) tests(p pkg) (string, error) {
	out := filepath.Join(b.work, strings.ReplaceAll(p.ImportPath, "/", "_")+".test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", b.overlay(), "-o", out, p.ImportPath)
	cmd.Dir = b.root
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the tests of %s: %w\n%s", p.ImportPath, err, text)
	}
	if _, err := os.Stat(out); err != nil {
		return "", nil
	}
	return out, nil
}

// mutants are all that compile.
func (b *build) mutants() []mutant {
	var all []mutant
	for _, m := range b.files {
		for _, mut := range m.mutants {
			if !b.dropped[mut.id] {
				all = append(all, mut)
			}
		}
	}
	return all
}
