package bundles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// BuiltName is the bundle that a build leaves in a source folder.
const BuiltName = "agent.bundle"

// A Bundle is an agent as it was read and verified. It is shared and not to be
// changed; nothing in it refers to the disk but the paths, which are for people.
type Bundle struct {
	Path   string // the directory or archive that was read
	Source string // the source folder whose agent.bundle Path is, or ""

	Manifest *Manifest
	Wasm     []byte
	Policy   []byte // the policy's text; nothing if there is none

	// PolicyPresent tells an empty policy from none. Without a policy the
	// bundle asks for what [requires] says and for nothing else.
	PolicyPresent bool
	PolicyName    string // inside the bundle
	PolicyPath    string // for positions

	Tools []Tool // of the tools.json that the manifest names, in its order

	// Digest names what is run, however it was packed: hex SHA-256 over a
	// listing of the manifest and the files that the runtime uses.
	Digest     string
	WasmSHA256 string // hex
	// Signed says that there is a signature of the right form. It is not
	// verified, so it vouches for nothing; see Findings.
	Signed bool

	Files    map[string][]byte // every regular file, by its slash-separated name
	Findings []Finding
}

// Open reads and verifies a bundle: a directory, a .tar or .tar.gz, or a source
// folder that holds an agent.bundle. The whole of it is read here, once. A
// refusal wraps one or more [*Error]; a path that is not there, or cannot be
// read, wraps the system's error too.
func Open(path string) (*Bundle, error) {
	if strings.HasPrefix(path, "oci://") {
		return nil, &Error{
			File: path, Code: "unsupported", Message: "bundles in a registry are not supported by this version",
			Hint: "pull the bundle with another tool and give its directory or archive",
		}
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; name the folder or the archive of a bundle (rlp agent list shows what is installed)",
			pathError(path, err))
	}
	if err != nil {
		return nil, pathError(path, err)
	}
	switch {
	case info.IsDir():
		return openDir(path, info)
	case !info.Mode().IsRegular(): // opening a device may do something
		return nil, noArchive(path, info)
	}
	files, err := openArchive(path)
	if err != nil {
		return nil, locate(err, within(path))
	}
	b, err := verify(files, within(path))
	if err != nil {
		return nil, err
	}
	b.Path = path
	return b, nil
}

// openArchive reads a file that is an archive. The file may be reached by a
// link: the path is the operator's.
func openArchive(path string) (map[string][]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, noArchive("", info)
	}
	if err := checkOwner("", info); err != nil {
		return nil, err
	}
	return readArchive(f, info.Size())
}

func noArchive(path string, info fs.FileInfo) error {
	return &Error{
		File: path, Code: "entry_type", Message: "this is " + modeWord(info.Mode()) + ", neither a directory nor an archive",
		Hint: hintTar,
	}
}

// openDir reads the bundle that a directory is, or holds.
func openDir(path string, info fs.FileInfo) (*Bundle, error) {
	dir, source := path, ""
	built := filepath.Join(path, BuiltName)
	inner, err := os.Lstat(built)
	switch {
	case err == nil && !inner.IsDir():
		return nil, &Error{File: built, Code: "entry_type", Message: "this is " + modeWord(inner.Mode()) +
			", not a directory"}
	case err == nil:
		dir, source, info = built, path, inner
	case !errors.Is(err, fs.ErrNotExist):
		return nil, pathError(path, err)
	}
	files, err := readDir(dir, info)
	if err != nil {
		return nil, locate(err, within(dir))
	}
	b, err := verify(files, within(dir))
	if err != nil {
		return nil, unbuilt(err, path)
	}
	b.Path, b.Source = dir, source
	if source != "" {
		if err := b.checkFresh(); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// unbuilt says how to build what may be a source folder that was not built, or
// what a build left broken.
func unbuilt(err error, path string) error {
	var e *Error
	if errors.As(err, &e) && (e.Code == codeNoManifest || e.Code == codeNoModule) {
		e.Hint = fmt.Sprintf("if this is a source folder, build it: `rlp agent build %s` or `make agents`", path)
	}
	return err
}

// within returns what a file inside path is called to people.
func within(path string) func(string) string {
	return func(name string) string {
		if name == "" {
			return path
		}
		return filepath.Join(path, filepath.FromSlash(name))
	}
}

// locate puts the path of a bundle before the name inside it in an [*Error];
// any other error is one of reading.
func locate(err error, path func(string) string) error {
	var e *Error
	if errors.As(err, &e) {
		e.File = path(e.File)
		return err
	}
	return pathError(path(""), err)
}

func pathError(path string, err error) error { return fmt.Errorf("opening bundle %s: %w", path, err) }
