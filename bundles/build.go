package bundles

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// optionalFiles are copied from a source folder though no manifest names them.
var optionalFiles = [...]string{DefaultPolicyName, toolsName, "sbom.cdx.json", "SBOM/spdx.json"}

// Build makes the agent.bundle of a source folder: its manifest.toml with the
// digests filled in, what the manifest names, and entry as the module or the program.
// It returns the path of the bundle. The new bundle takes the place of an old one
// in one step, after it was verified, and not at all if anything is wrong.
func Build(dir string, entry []byte) (string, error) {
	m, tree, err := sourceTree(dir, entry)
	if err != nil {
		return "", err
	}
	if !m.Program && !bytes.HasPrefix(entry, []byte("\x00asm")) {
		return "", &Error{File: dir, Code: "module", Message: "what was built is not a WebAssembly module"}
	}
	temp, err := os.MkdirTemp(dir, "."+BuiltName+"-*")
	if err != nil {
		return "", buildError(dir, err)
	}
	defer os.RemoveAll(temp)
	if err := writeTree(temp, tree, m); err != nil {
		return "", buildError(dir, err)
	}
	if err := verifyWritten(temp, within(dir)); err != nil {
		return "", err
	}
	built := filepath.Join(dir, BuiltName)
	if err := replace(temp, built); err != nil {
		return "", buildError(dir, err)
	}
	return built, nil
}

// SourceManifest reads the manifest of a source folder. One with a command to run is
// refused where somebody else than the operator and root could have written it.
func SourceManifest(dir string) (*Manifest, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, buildError(dir, err)
	}
	defer root.Close()
	in := within(dir)
	_, m, err := manifestIn(root, in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{
			File: in(ManifestName), Code: "file_missing", Message: "there is no such file",
			Hint: "`rlp agent new NAME` makes a folder with one",
		}
	}
	if err != nil || m.Build == nil || len(m.Build.Command) == 0 {
		return m, err
	}
	for _, name := range []string{"", ManifestName} {
		if err := ownIn(root, name); err != nil {
			return nil, locate(err, in)
		}
	}
	return m, nil
}

// ownIn is [checkOwner] of a file in a folder, or of the folder.
func ownIn(root *os.Root, name string) error {
	f, err := root.OpenFile(cmp.Or(name, "."), os.O_RDONLY|openFlags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return checkOwner(name, f, info)
}

func manifestIn(root *os.Root, in func(string) string) ([]byte, *Manifest, error) {
	text, err := readIn(root, ManifestName, in)
	if err != nil {
		return nil, nil, err
	}
	m, err := ParseManifest(in(ManifestName), text)
	return text, m, err
}

func buildError(dir string, err error) error {
	return fmt.Errorf("building the bundle of %s: %w", dir, err)
}

// sourceTree reads what a source folder ships, and fills in the digests.
func sourceTree(dir string, entry []byte) (m *Manifest, tree map[string][]byte, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, buildError(dir, err)
	}
	defer root.Close()
	in := within(dir)
	text, m, err := manifestIn(root, in)
	if err != nil {
		return nil, nil, err
	}
	tree = map[string][]byte{}
	for _, f := range m.Files() {
		if f.Path == m.Entry.Path {
			continue
		}
		data, err := readIn(root, f.Path, in)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, &Error{
				File: f.Pos.File, Line: f.Pos.Line, Column: f.Pos.Column,
				Code: "file_missing", Message: "the folder has no file " + quote(f.Path),
			}
		}
		if err != nil {
			return nil, nil, err
		}
		tree[f.Path] = data
	}
	if err := addOptional(root, tree, in); err != nil {
		return nil, nil, err
	}
	sum := ""
	if !m.OfMachine() {
		tree[m.Entry.Path] = entry
	} else if sum, err = machineSum(m.Entry.Path); err != nil {
		return nil, nil, err
	}
	tree[ManifestName], err = fillDigests(in(ManifestName), text, tree, sum)
	return m, tree, err
}

// verifyWritten reads a bundle back the way it will be opened, so that nothing
// is built that does not open. Errors name the files of the source.
func verifyWritten(temp string, in func(string) string) error {
	info, err := os.Lstat(temp)
	if err != nil {
		return buildError(in(""), err)
	}
	files, err := readDir(temp, info)
	if err != nil {
		return locate(err, in)
	}
	_, err = verify(files, in)
	return err
}

func addOptional(root *os.Root, tree map[string][]byte, in func(string) string) error {
	names := optionalFiles[:]
	schemas, err := fs.Glob(root.FS(), "schemas/*.json")
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(names, schemas) {
		if _, ok := tree[name]; ok {
			continue
		}
		data, err := readIn(root, name, in)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		tree[name] = data
	}
	return nil
}

// readIn reads one regular file beneath root. It does not wait for pipes and
// takes no link for the file.
func readIn(root *os.Root, name string, in func(string) string) ([]byte, error) {
	local := filepath.FromSlash(name)
	info, err := root.Lstat(local)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", in(name), err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{File: in(name), Code: "entry_type", Message: "this is " + modeWord(info.Mode()) + ", not a file"}
	}
	d := &dirReader{files: make(map[string][]byte), left: MaxTotal, anyOwner: true}
	if err := d.file(root, name, local, info); err != nil {
		return nil, locate(err, in)
	}
	return d.files[name], nil
}

// writeTree writes a tree so that only its owner can change it, whatever the
// umask.
func writeTree(dir string, tree map[string][]byte, m *Manifest) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for _, name := range sortedKeys(tree) {
		if folder := path.Dir(name); folder != "." {
			if err := root.MkdirAll(filepath.FromSlash(folder), 0o755); err != nil {
				return err
			}
		}
		if err := root.WriteFile(filepath.FromSlash(name), tree[name], m.mode(name, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// replaceByMoving puts temp in the place of built in two steps, and undoes the
// first if the second does not work. What was there ends up at temp or beside.
func replaceByMoving(temp, built string) error {
	old := temp + ".old"
	err := os.Rename(built, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	had := err == nil
	if err := os.Rename(temp, built); err != nil {
		if had {
			return errors.Join(err, os.Rename(old, built))
		}
		return err
	}
	return os.RemoveAll(old)
}
