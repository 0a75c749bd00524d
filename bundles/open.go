package bundles

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"runloop.dev/rlp/internal/base/ident"
)

// BuiltName is the bundle that a build leaves in a source folder.
const BuiltName = "agent.bundle"

// A Bundle is an agent as it was read and verified. It is shared and not to be
// changed; nothing in it refers to the disk but the paths, which are for people.
type Bundle struct {
	Path   string // the directory, archive or module that was read
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
	// Bare says that this is a module without a bundle: the file names the agent,
	// there is no policy, and whoever launches it says what it asks for.
	Bare bool

	Files    map[string][]byte // every regular file, by its slash-separated name
	Findings []Finding
}

// Open reads and verifies a bundle: a directory, a .tar or .tar.gz, or a source
// folder that holds an agent.bundle. The whole of it is read here, once. A
// refusal wraps one or more [*Error]; a path that is not there, or cannot be
// read, wraps the system's error too.
func Open(path string) (*Bundle, error) { return open(path, false) }

// OpenOrModule is [Open] for whoever may launch a module without a bundle, too: a
// regular file of the operator's that begins as a module does. It is not reached by
// a link as its last component, for its name is the agent's.
func OpenOrModule(path string) (*Bundle, error) { return open(path, true) }

func open(path string, orModule bool) (*Bundle, error) {
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
	files, b, err := openFile(path, orModule)
	if err != nil {
		return nil, locate(err, within(path))
	}
	if b == nil {
		if b, err = verify(files, within(path)); err != nil {
			return nil, err
		}
	}
	b.Path = path
	return b, nil
}

// openFile reads a file: the files of an archive, or the agent that a module is. An
// archive may be reached by a link: the path is the operator's.
func openFile(path string, orModule bool) (files map[string][]byte, module *Bundle, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, noArchive("", info)
	}
	if err := checkOwner("", f, info); err != nil {
		return nil, nil, err
	}
	if orModule && isModule(f) {
		module, err = readModule(f, path, info)
		return nil, module, err
	}
	files, err = readArchive(f, info.Size())
	return files, nil, err
}

func isModule(r io.ReaderAt) bool {
	head := make([]byte, len(moduleMagic))
	_, err := r.ReadAt(head, 0)
	return err == nil && string(head) == moduleMagic
}

// readModule reads the module that info is about as an agent without a policy.
func readModule(f io.Reader, path string, info fs.FileInfo) (*Bundle, error) {
	named, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case named.Mode()&fs.ModeSymlink != 0:
		return nil, linkedModule(path)
	case !os.SameFile(named, info):
		return nil, changed("")
	case info.Size() > MaxModule:
		return nil, &Error{
			Code: "size", Message: fmt.Sprintf("the module has %d bytes; at most %d are read", info.Size(), MaxModule),
		}
	}
	agent, err := ident.AgentOf(filepath.Base(path))
	if err != nil {
		return nil, &Error{Code: "agent_name", Message: err.Error(), Hint: "rename the file"}
	}
	wasm, err := readSized(f, info.Size(), info.Size())
	var grown *Error
	switch {
	case errors.As(err, &grown):
		return nil, changed("")
	case err != nil:
		return nil, err
	}
	sum := sha256Hex(wasm)
	return &Bundle{
		Manifest: &Manifest{Agent: agent, Entry: File{Path: filepath.Base(path), SHA256: sum}},
		Wasm:     wasm, WasmSHA256: sum, Digest: sum, Bare: true,
	}, nil
}

// machineSum is the SHA-256, in hex, of a program of this machine. A script is none:
// what interprets it reads it by name while it runs, and others may write it meanwhile.
func machineSum(p string) (sum string, err error) {
	refuse := func(code, hint, format string, args ...any) (string, error) {
		return "", &Error{File: p, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint}
	}
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		return refuse("file_missing", "", "%v", err)
	}
	if real != p {
		return refuse("entry_type", "write path = \""+real+"\"", "a link is on the way to it")
	}
	f, err := os.OpenFile(p, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return refuse("file_missing", "", "%v", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	switch {
	case !info.Mode().IsRegular():
		return refuse("entry_type", "name a program's file", "this is %s", modeWord(info.Mode()))
	case info.Mode()&0o111 == 0:
		return refuse("entry_type", "chmod +x, if it is one", "nobody may execute it")
	case info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return refuse("entry_type", "name another program", "it runs as its owner (mode %s), which no agent does", info.Mode())
	case info.Size() > MaxTotal:
		return refuse("size", "", "it has %d bytes; at most %d are read", info.Size(), int64(MaxTotal))
	}
	if err := checkOwner(p, f, info); err != nil {
		return "", err
	}
	h := sha256.New()
	var head bytes.Buffer
	n, err := io.Copy(h, io.TeeReader(io.LimitReader(f, 2), &head))
	if err == nil && !strings.HasPrefix(head.String(), "#!") {
		var rest int64
		rest, err = io.Copy(h, io.LimitReader(f, MaxTotal))
		n += rest
	}
	switch {
	case err != nil:
		return "", err
	case head.String() == "#!":
		return refuse("entry_type", "copy it into the bundle, or name what interprets it and give the script among args",
			"this is a script")
	case n != info.Size():
		return "", changed(p)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// linkedModule says where the file itself is.
func linkedModule(path string) error {
	e := &Error{
		Code: "entry_type", Message: "this is a symbolic link, and an agent without a bundle is named after its own file",
	}
	if to, err := filepath.EvalSymlinks(path); err == nil {
		e.Hint = "name " + to
	}
	return e
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
	if err != nil && noManifest(dir, err) {
		files, err = nil, nil // nobody asks what else is wrong with a folder that is no bundle
	}
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

// noManifest reports whether a folder whose entries cannot be a bundle's has no manifest.
func noManifest(dir string, err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.Code != "archive_limit" && !strings.HasPrefix(e.Code, "entry_") {
		return false
	}
	_, err = os.Lstat(filepath.Join(dir, ManifestName))
	return errors.Is(err, fs.ErrNotExist)
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
