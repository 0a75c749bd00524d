package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/strictjson"
)

// A release is what every archive is made of.
type release struct {
	source  fs.FS  // the tree
	work    string // the folder of the programs that were built
	printed pages
}

// pages are what the program prints of itself.
type pages struct {
	version     string
	manual      []entry
	completions map[string][]byte // by shell
}

// places are where each shell looks for completions, from a prefix.
var places = map[string]string{
	"bash": "share/bash-completion/completions/rlp",
	"zsh":  "share/zsh/site-functions/_rlp",
	"fish": "share/fish/vendor_completions.d/rlp.fish",
}

// docDir is where all that is read lies, from a prefix.
const docDir = "share/doc/rlp/"

// printed asks a program of this system.
func printed(ctx context.Context, program string) (p pages, err error) {
	dir, err := os.MkdirTemp("", "rlp-dist-")
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ask := func(args ...string) []byte {
		if err != nil {
			return nil
		}
		c := exec.CommandContext(ctx, program, args...)
		c.Env = []string{"HOME=" + dir, "RUNLOOP_HOME=" + filepath.Join(dir, "home"), "NO_COLOR=1", "PATH=" +
			os.Getenv("PATH")}
		var out, problems bytes.Buffer
		c.Stdout, c.Stderr = &out, &problems
		if err = c.Run(); err != nil {
			err = fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, problems.Bytes())
		}
		return out.Bytes()
	}
	var v struct {
		Version string `json:"version"`
	}
	if text := ask("version", "--json"); err == nil {
		err = strictjson.Unmarshal(text, &v, strictjson.UnknownFields)
	}
	p.version, p.completions = v.Version, make(map[string][]byte)
	for shell := range places {
		p.completions[shell] = ask("completion", shell)
	}
	ask("man", filepath.Join(dir, "man"))
	if err != nil {
		return p, err
	}
	p.manual, err = folder(os.DirFS(filepath.Join(dir, "man")), "*", "share/man/man1/")
	return p, err
}

// folder is the files of a tree that match a pattern, beneath a folder of the release.
func folder(tree fs.FS, pattern, to string) ([]entry, error) {
	names, err := fs.Glob(tree, pattern) // sorted
	if err != nil {
		return nil, err
	}
	var found []entry
	for _, name := range names {
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		found = append(found, entry{to + path.Base(name), 0o644, data})
	}
	return found, nil
}

// name is what the files of a target are called.
func (r release) name(target string) string {
	return "rlp_" + r.printed.version + "_" + strings.ReplaceAll(target, "/", "_")
}

// files are what a target's archive has, sorted, laid out as beneath prefix; and the
// SBOM, which is one of them.
func (r release) files(target, prefix string) ([]entry, []byte, error) {
	dir := filepath.Join(r.work, filepath.FromSlash(target))
	program, err := os.ReadFile(filepath.Join(dir, "rlp"))
	if err != nil {
		return nil, nil, err
	}
	sbom, err := r.sbom(target, filepath.Join(dir, "rlp"))
	if err != nil {
		return nil, nil, err
	}
	all := []entry{{"bin/rlp", 0o755, program}, {docDir + "rlp.cdx.json", 0o644, sbom}}
	texts, err := r.texts()
	if err != nil {
		return nil, nil, err
	}
	all = append(append(all, texts...), r.printed.manual...)
	for shell, text := range r.printed.completions {
		all = append(all, entry{places[shell], 0o644, text})
	}
	if strings.HasPrefix(target, "linux/") {
		services, err := r.services(prefix)
		if err != nil {
			return nil, nil, err
		}
		confine, err := os.ReadFile(filepath.Join(dir, "rlp-confine"))
		if err != nil {
			return nil, nil, err
		}
		all = append(append(all, services...), entry{"bin/rlp-confine", 0o755, confine})
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return all, sbom, nil
}

// texts are what people read, on every system.
func (r release) texts() ([]entry, error) {
	var all []entry
	for _, pattern := range []string{
		"README.md", "ARCHITECTURE.md", "RATIONALE.md", "LICENSE*", "CHANGELOG.md",
		"SECURITY.md", "docs/*.md", "docs/*.json", "docs/*.png",
	} {
		to := docDir
		if strings.HasPrefix(pattern, "docs/") {
			to += "docs/"
		}
		found, err := folder(r.source, pattern, to)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// services are the units and the image. Units name the program where it will lie.
func (r release) services(prefix string) ([]entry, error) {
	all := []entry{
		// The image's file system is these: a home of nobody else's, and room for
		// what programs leave for a moment.
		{docDir + "image/tmp", fs.ModeDir | 0o1777, nil},
		{docDir + "image/var/lib/rlp", fs.ModeDir | 0o700, nil},
	}
	for from, to := range map[string]string{
		"internal/dev/dist/rlp.service":      "lib/systemd/system/rlp.service",
		"internal/dev/dist/user/rlp.service": "lib/systemd/user/rlp.service",
		"internal/dev/dist/exec.conf":        docDir + "exec.conf",
		"internal/dev/dist/Dockerfile":       docDir + "Dockerfile",
	} {
		text, err := fs.ReadFile(r.source, from)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(to, ".service") {
			text = bytes.ReplaceAll(text, []byte("/usr/local/bin/rlp"), []byte(path.Join(prefix, "bin/rlp")))
		}
		all = append(all, entry{to, 0o644, text})
	}
	return all, nil
}

// built are the targets that WORK has programs of, sorted.
func built(work string) ([]string, error) {
	found, err := fs.Glob(os.DirFS(work), "*/*/rlp")
	if err != nil || len(found) == 0 {
		return nil, errors.Join(err, fmt.Errorf("no program in %s: make dist builds them", work))
	}
	for i, name := range found {
		found[i] = path.Dir(name)
	}
	return found, nil
}
