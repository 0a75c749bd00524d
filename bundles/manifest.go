package bundles

import (
	"encoding/json"
	"io/fs"
	"strings"

	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// ManifestName is the file of a bundle that names all others.
const ManifestName = "manifest.toml"

// DefaultPolicyName is the policy of a bundle whose manifest names none.
const DefaultPolicyName = "policy.caps"

// The kinds of agents: a module, and a program of this machine's kind.
const (
	Kind        = "wasm32-wasip1"
	KindProgram = "program"
)

// What [input] type says an agent is given to read. JSON is the default.
const (
	InputJSON  = "json"  // one document
	InputText  = "text"  // UTF-8
	InputBytes = "bytes" // anything
)

// A Manifest is manifest.toml: what the agent is called, which files it is made
// of, and what it asks for. It names no tenant, no place outside the bundle and
// nothing about who may run it.
type Manifest struct {
	Agent       ident.Agent
	Version     string // "" if the manifest gives none
	Variant     string
	Description string

	Entry     File     // the module, or the program
	Program   bool     // the agent is a program: what is below a policy without being compiled
	Args      []string // of a program: its first arguments
	Policy    *File    // nil without a [caps] table
	Artifacts map[string]Artifact
	Build     *BuildStep // nil without a [build] table

	Requires *tomlfile.Table // [requires], the keys of [capabilities]; nil if absent
	Limits   *tomlfile.Table // [limits]; nil if absent

	Params  map[string]Param
	Schemas map[string]json.RawMessage // [schemas.x] as JSON; "with" is that of the input
	In, Out []string                   // [ports]
	Input   string                     // [input] type: [InputJSON], [InputText] or [InputBytes]

	native *tomlfile.Pos // of an entry_native, which is not run
}

// A BuildStep is how `rlp agent build` gets the module of a source folder. A launch
// does nothing with it.
type BuildStep struct {
	Command []string // a program and its arguments, run in the folder; nil: Output is made by other means
	Output  string   // the module that there is then, beneath the folder
	Pos     tomlfile.Pos
}

// A File is a file of the bundle that the manifest names, with the digests that
// it gives for it: 64 lower-case hex digits or "".
type File struct {
	Path   string
	SHA256 string
	BLAKE3 string
	Pos    tomlfile.Pos // of the path
}

// An Artifact is a file that the runtime uses beside the module and the policy.
type Artifact struct {
	File
	Version int64
}

// A Param is a placeholder of the policy that the operator fills at launch.
type Param struct {
	Kind        string // "dir" or "file"
	Description string
	Pos         tomlfile.Pos
}

// OfMachine reports whether the agent is a program that lies outside of the bundle, at
// an absolute path of the machine.
func (m *Manifest) OfMachine() bool { return m.Program && strings.HasPrefix(m.Entry.Path, "/") }

// mode is that of a file of the bundle which is not executed, and what lets the program
// be executed by whom the file is for.
func (m *Manifest) mode(name string, mode fs.FileMode) fs.FileMode {
	if m.Program && name == m.Entry.Path {
		mode |= mode & 0o444 >> 2
	}
	return mode
}

// Files returns every file of the bundle that the manifest names, the module or the
// program first.
func (m *Manifest) Files() []File {
	var files []File
	if !m.OfMachine() {
		files = append(files, m.Entry)
	}
	if m.Policy != nil {
		files = append(files, *m.Policy)
	}
	for _, name := range sortedKeys(m.Artifacts) {
		files = append(files, m.Artifacts[name].File)
	}
	return files
}
