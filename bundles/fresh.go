package bundles

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
)

// checkFresh compares a built bundle with the source folder around it. A policy
// that was changed in the source would not hold, nor would what was changed of
// the tools, so that is a refusal; a manifest that was changed is a remark.
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
			File: in(name), Code: "stale_build", Message: "this is not the policy that " + BuiltName + " was built with",
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
			return &Error{File: in(a.Path), Code: "stale_build", Message: "these are not the tools that " + BuiltName +
				" was built with", Hint: rebuild}
		}
	}
	text, err = readIn(root, ManifestName, in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		text, err = fillDigests(in(ManifestName), text, b.Files)
	}
	if err != nil || !bytes.Equal(text, b.Files[ManifestName]) {
		b.Findings = append(b.Findings, Finding{
			Path: in(ManifestName), Severity: Warning, Code: "stale_build",
			Message: "this is not the manifest that " + BuiltName + " was built with", Hint: rebuild,
		})
	}
	return nil
}
