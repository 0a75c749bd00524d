package bundles

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// SignatureName is where the signature of the manifest lies.
const SignatureName = "SIGNATURES/manifest.sig"

// toolsName is where tools are looked for that no manifest names.
const toolsName = "tools.json"

// A verifier makes a [Bundle] of files that were read, or refuses them.
type verifier struct {
	b    *Bundle
	path func(name string) string // of a file, for people
	sums map[string]string        // sha256 by name

	schemas []string // files that the tools refer to
}

// verify checks a tree against its manifest. Nothing is read but files.
func verify(files map[string][]byte, path func(name string) string) (*Bundle, error) {
	v := &verifier{b: &Bundle{Files: files}, path: path, sums: make(map[string]string)}
	text, ok := files[ManifestName]
	if !ok {
		return nil, &Error{File: path(""), Code: codeNoManifest, Message: "there is no " + ManifestName + v.wrapped()}
	}
	m, err := ParseManifest(path(ManifestName), text)
	if err != nil {
		return nil, err
	}
	v.b.Manifest = m
	if err := v.signature(); err != nil {
		return nil, err
	}
	listed := m.Files()
	for i := range listed {
		if err := v.file(&listed[i]); err != nil {
			return nil, err
		}
	}
	if err := v.entry(); err != nil {
		return nil, err
	}
	if err := v.policy(); err != nil {
		return nil, err
	}
	if err := v.tools(); err != nil {
		return nil, err
	}
	v.remarks()
	v.b.Digest = v.digest(text)
	return v.b, nil
}

// entry takes the module, or checks what a program must be beside the file that the
// manifest means: its digest is what is executed, so that there is none without.
func (v *verifier) entry() error {
	m := v.b.Manifest
	f := m.Entry
	if !m.Program {
		v.b.Wasm, v.b.WasmSHA256 = v.b.Files[f.Path], v.sum(f.Path)
		return nil
	}
	if f.SHA256 == "" {
		return v.refuse(f.Pos, "digest_missing", "entry_program has no sha256", "`rlp agent build` writes it")
	}
	if !m.OfMachine() {
		return nil
	}
	sum, err := machineSum(f.Path)
	var e *Error
	switch {
	case errors.As(err, &e):
		return v.refuse(f.Pos, e.Code, quote(f.Path)+": "+e.Message, e.Hint)
	case err != nil:
		return fmt.Errorf("reading the program %s: %w", f.Path, err)
	case sum != f.SHA256:
		e := v.mismatch(&f, "sha256", sum)
		e.Hint = "where it was upgraded, `rlp agent build` and `rlp agent install` take the new one"
		return e
	}
	return nil
}

// What is missing in a source folder that was not built.
const (
	codeNoManifest = "manifest_missing"
	codeNoModule   = "module_missing"
)

// wrapped helps with the usual mistake of packing the folder instead of what is
// in it.
func (v *verifier) wrapped() string {
	for _, name := range sortedKeys(v.b.Files) {
		if dir, ok := strings.CutSuffix(name, "/"+ManifestName); ok {
			return " at the top; there is one in " + quote(dir)
		}
	}
	return ""
}

// signatureSize is that of an Ed25519 signature, in bytes. The package is not
// linked for it: its tables are made before main.
const signatureSize = 64

// signature looks at the signature without judging it: keys and whom they are
// trusted for come with the operator's trust policy. A bundle that claims to be
// signed is held to what is asked of one.
func (v *verifier) signature() error {
	text, ok := v.b.Files[SignatureName]
	if !ok {
		return nil
	}
	sig, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(sig) != signatureSize {
		return &Error{
			File: v.path(SignatureName), Code: "signature_malformed",
			Message: "this is not an Ed25519 signature in base64",
		}
	}
	v.b.Signed = true
	v.warn(tomlfile.Pos{File: v.path(SignatureName)}, "signature_not_verified",
		"the signature is not verified by this version: it proves nothing about who made the bundle", "")
	return nil
}

// file checks that a file which the manifest names is there and is the one that
// it means.
func (v *verifier) file(f *File) error {
	data, ok := v.b.Files[f.Path]
	if !ok {
		code := "file_missing"
		if f.Path == v.b.Manifest.Entry.Path {
			code = codeNoModule
		}
		return v.refuse(f.Pos, code, "the bundle has no file "+quote(f.Path), "")
	}
	if f.SHA256 != "" && f.SHA256 != v.sum(f.Path) {
		return v.mismatch(f, "sha256", v.sum(f.Path))
	}
	if f.BLAKE3 != "" {
		if got := blake3Hex(data); f.BLAKE3 != got {
			return v.mismatch(f, "blake3", got)
		}
	}
	if f.SHA256 == "" && f.BLAKE3 == "" {
		return v.undigested(f.Pos, f.Path)
	}
	return nil
}

func (v *verifier) mismatch(f *File, what, got string) *Error {
	return v.refuse(f.Pos, "digest_mismatch",
		fmt.Sprintf("%s is not the file that the manifest means: its %s is %s", quote(f.Path), what, got),
		"restore the file, or build the bundle again")
}

// undigested is a file without a digest: a remark, and in a signed bundle a
// refusal, because the signature says nothing about such a file.
func (v *verifier) undigested(pos tomlfile.Pos, name string) error {
	const hint = "`rlp agent build` writes the digests"
	message := "the manifest gives no digest for " + quote(name)
	if v.b.Signed {
		return v.refuse(pos, "digest_missing", message+", and the bundle is signed", hint)
	}
	v.warn(pos, "digest_missing", message, hint)
	return nil
}

// policy finds the policy. Without one the bundle asks for what [requires] says
// and nothing else; that a named one is there, file has checked.
func (v *verifier) policy() error {
	name, listed := DefaultPolicyName, v.b.Manifest.Policy != nil
	if listed {
		name = v.b.Manifest.Policy.Path
	}
	text, ok := v.b.Files[name]
	if !ok {
		return nil
	}
	v.b.Policy, v.b.PolicyPresent, v.b.PolicyName, v.b.PolicyPath = text, true, name, v.path(name)
	if !listed {
		return v.undigested(tomlfile.Pos{File: v.path(name)}, name)
	}
	return nil
}

// remarks finds what is in a bundle and without effect.
func (v *verifier) remarks() {
	m := v.b.Manifest
	if m.native != nil {
		v.warn(*m.native, "entry_native_ignored", "entry_native is never run: agents are WebAssembly", "remove it")
	}
	if m.Version == "" {
		v.warn(tomlfile.Pos{File: v.path(ManifestName)}, "version_missing", "[agent] has no version",
			`write version = "0.1.0"`)
	}
	for _, name := range sortedKeys(m.Artifacts) {
		if name == toolsArtifact || slices.Contains(v.schemas, m.Artifacts[name].Path) {
			continue
		}
		v.warn(m.Artifacts[name].Pos, "artifact_unused", quote(name)+" is verified and then not used by this version", "")
		v.b.Findings[len(v.b.Findings)-1].Severity = Info
	}
	listed := m.Files()
	for name, how := range map[string]string{DefaultPolicyName: "[caps] file", toolsName: "[artifacts.tools]"} {
		_, there := v.b.Files[name]
		isListed := slices.ContainsFunc(listed, func(f File) bool { return f.Path == name })
		if there && !isListed && name != v.b.PolicyName {
			v.warn(tomlfile.Pos{File: v.path(name)}, "file_unused", name+" is not used: "+how+" does not name it", "")
		}
	}
	slices.SortStableFunc(v.b.Findings, func(a, b Finding) int { return strings.Compare(a.Path, b.Path) })
}

// digest returns the digest of what the runtime uses: the manifest and every
// file that it names or that is found by its default name. How the tree was
// packed, its modes and times, and files that nothing uses do not enter.
func (v *verifier) digest(manifest []byte) string {
	names := []string{}
	for _, f := range v.b.Manifest.Files() {
		names = append(names, f.Path)
	}
	if v.b.PolicyPresent {
		names = append(names, v.b.PolicyName)
	}
	names = append(names, v.schemas...)
	slices.Sort(names)
	h := sha256.New()
	sum := sha256.Sum256(manifest)
	fmt.Fprintf(h, "runloop-bundle-digest-v1\n%x %s\n", sum, ManifestName)
	for _, name := range slices.Compact(names) {
		// No name holds a line end, so no listing is also another one.
		fmt.Fprintf(h, "%s %s\n", v.sum(name), name)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (v *verifier) sum(name string) string {
	if s, ok := v.sums[name]; ok {
		return s
	}
	v.sums[name] = sha256Hex(v.b.Files[name])
	return v.sums[name]
}

func (v *verifier) refuse(pos tomlfile.Pos, code, message, hint string) *Error {
	return &Error{File: pos.File, Line: pos.Line, Column: pos.Column, Code: code, Message: message, Hint: hint}
}

func (v *verifier) warn(pos tomlfile.Pos, code, message, hint string) {
	v.b.Findings = append(v.b.Findings, Finding{
		Path: pos.File, Line: pos.Line, Column: pos.Column, Severity: Warning, Code: code, Message: message, Hint: hint,
	})
}
