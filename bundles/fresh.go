package bundles

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// CodeStale is the code of what was changed in a source folder since it was built.
const CodeStale = "stale_build"

// checkFresh compares a built bundle with the source folder around it. A policy
// that was changed in the source would not hold, nor would what was changed of
// the tools, so that is a refusal; a manifest that was changed is a remark, and so is
// code that is newer than the module.
func (b *Bundle) checkFresh() error {
	root, err := os.OpenRoot(b.Source)
	if err != nil {
		return pathError(b.Source, err)
	}
	defer root.Close()
	in := within(b.Source)
	rebuild := "run `rlp agent build " + b.Source + "`"
	name := DefaultPolicyName
	if b.PolicyPresent {
		name = b.PolicyName
	}
	text, err := readIn(root, name, in)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !b.PolicyPresent || !bytes.Equal(text, b.Policy):
		return &Error{
			File: in(name), Code: CodeStale, Message: "this is not the policy that " + BuiltName + " was built with",
			Hint: rebuild,
		}
	default: // the same bytes: what is wrong in them is mended there
		b.PolicyPath = in(name)
	}
	if a, ok := b.Manifest.Artifacts[toolsArtifact]; ok {
		text, err = readIn(root, a.Path, in)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !bytes.Equal(text, b.Files[a.Path]):
			return &Error{File: in(a.Path), Code: CodeStale, Message: "these are not the tools that " + BuiltName +
				" was built with", Hint: rebuild}
		}
	}
	b.remarkCode(root, in, rebuild)
	text, err = readIn(root, ManifestName, in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		text, err = fillDigests(in(ManifestName), text, b.Files, b.Manifest.Entry.SHA256)
	}
	if err != nil || !bytes.Equal(text, b.Files[ManifestName]) {
		b.Findings = append(b.Findings, Finding{
			Path: in(ManifestName), Severity: Warning, Code: CodeStale,
			Message: "this is not the manifest that " + BuiltName + " was built with", Hint: rebuild,
		})
	}
	return nil
}

// sameTime is how far apart the files of one copy may be: only what is newer than the
// build by more was surely changed behind it.
const sameTime = 2 * time.Second

// remarkCode names the newest file of code beside the bundle, or in src, that is newer
// than what was built of it. Which files are code is known of the folders that
// `rlp agent new` makes: without [build] those of Go, with it those of C and Rust too.
func (b *Bundle) remarkCode(root *os.Root, in func(string) string, rebuild string) {
	built, err := root.Stat(path.Join(BuiltName, ManifestName)) // which each build writes anew
	if err != nil {
		return
	}
	ends := []string{".go"}
	if b.Manifest.Build != nil {
		ends = append(ends, ".c", ".h", ".rs")
	}
	newest, at := "", built.ModTime().Add(sameTime)
	for _, dir := range []string{".", "src"} {
		entries, _ := fs.ReadDir(root.FS(), dir)
		for _, e := range entries {
			if !slices.Contains(ends, path.Ext(e.Name())) || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.ModTime().After(at) {
				newest, at = path.Join(dir, e.Name()), info.ModTime()
			}
		}
	}
	if newest != "" {
		b.Findings = append(b.Findings, Finding{
			Path: in(newest), Severity: Warning, Code: CodeStale,
			Message: "this is newer than the module that " + BuiltName + " was built with", Hint: rebuild,
		})
	}
}
