package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	source "runloop.dev/rlp/agents"
	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/launcher/compose"
)

// A Made is a folder that was made, with the files in it.
type Made struct {
	Agent string   `json:"agent"`
	Dir   string   `json:"dir"`
	Lang  string   `json:"lang"`
	Files []string `json:"files"`
}

const (
	// exampleName is what the agent is called that new ones are copies of.
	exampleName = "first_agent"
	sdkModule   = "runloop.dev/rlp/agents/sdk"
)

// Langs are the languages that New knows.
func Langs() []string { return []string{"go", "rust", "c"} }

// New makes a folder with an agent in it that builds, tests and launches at once.
// dir "" is a folder of its name here.
func New(r *compose.Reader, name, lang, dir string) (*Made, error) {
	id, err := ident.ParseAgent(name)
	if err != nil {
		return nil, compose.Usagef("%w", fmt.Errorf("rlp agent new: %w", err))
	}
	files, err := firstFiles(lang)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		dir = id.String()
	}
	if err := r.OwnPaths(dir); err != nil {
		return nil, err
	}
	for file, text := range files {
		files[file] = strings.ReplaceAll(text, exampleName, id.String())
	}
	if err := makeFolder(dir, files); err != nil {
		return nil, err
	}
	return &Made{Agent: id.String(), Dir: dir, Lang: lang, Files: sortedNames(files)}, nil
}

// firstFiles are the files of a first agent in a language, with the SDK.
func firstFiles(lang string) (map[string]string, error) {
	c := &collector{files: map[string]string{".gitignore": "agent.bundle/\nagent.wasm\ntarget/\n"}}
	c.copy("manifest.toml", "sdk/first/manifest.toml")
	c.copy(bundles.DefaultPolicyName, "sdk/first/policy.caps")
	switch lang {
	case "go":
		c.copyGo(".", "sdk/first/go", true)
		for _, folder := range []string{"", "/jsonlite", "/sdktest"} {
			c.copyGo("sdk"+folder, "sdk"+folder, false)
		}
		c.files["sdk/go.mod"] = "module " + sdkModule + "\n\ngo " + source.GoVersion + "\n"
		c.files["go.mod"] = "module example.com/" + exampleName + "\n\ngo " + source.GoVersion + "\n\nrequire " + sdkModule +
			" v0.0.0\n\n// The SDK as this rlp has it; its path resolves nowhere else.\nreplace " + sdkModule + " => ./sdk\n"
	case "c":
		c.copy("main.c", "sdk/first/c/main.c")
		c.copy("runloop.h", "sdk/c/runloop.h")
	case "rust":
		for _, name := range []string{"Cargo.toml", "build.sh", "src/main.rs"} {
			c.copy(name, "sdk/first/rust/"+name)
		}
		c.copy("src/runloop.rs", "sdk/rust/runloop.rs")
	default:
		return nil, compose.Usagef("%w", fmt.Errorf("rlp agent new --lang %q: write one of %s", printable.Line(lang),
			strings.Join(Langs(), ", ")))
	}
	if lang != "go" {
		c.copy("test.sh", "sdk/first/test.sh")
		c.files["manifest.toml"] += c.read("sdk/first/" + lang + "/build.toml")
	}
	return c.files, c.err
}

// A collector takes sources together, until the first error.
type collector struct {
	files map[string]string
	err   error
}

func (c *collector) read(from string) string {
	text, err := source.Text.ReadFile(from)
	c.err = errors.Join(c.err, err)
	return string(text)
}

func (c *collector) copy(to, from string) { c.files[to] = c.read(from) }

// copyGo copies the Go files of a folder.
func (c *collector) copyGo(to, from string, tests bool) {
	names, err := fs.Glob(source.Text, from+"/*.go")
	c.err = errors.Join(c.err, err)
	for _, name := range names {
		if tests || !strings.HasSuffix(name, "_test.go") {
			c.copy(path.Join(to, path.Base(name)), name)
		}
	}
}

// makeFolder writes files into a folder that is not there yet, or is empty, so that
// only its owner can change them, whatever the umask.
func makeFolder(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return compose.InputErr(fmt.Errorf("making %s: %w", printable.Line(dir), err))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return compose.InputErr(fmt.Errorf("making %s: %w", printable.Line(dir), err))
	}
	if len(entries) > 0 {
		return compose.InputErr(fmt.Errorf("%s is there and not empty, and nothing of it is overwritten: write another folder, "+
			"--dir DIR", printable.Line(dir)))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return compose.InputErr(fmt.Errorf("making %s: %w", printable.Line(dir), err))
	}
	defer root.Close()
	for _, name := range sortedNames(files) {
		if err := makeFile(root, name, files[name]); err != nil {
			return compose.InputErr(fmt.Errorf("making %s: %w", printable.Line(dir), err))
		}
	}
	return nil
}

func makeFile(root *os.Root, name, text string) error {
	if err := root.MkdirAll(filepath.Dir(filepath.FromSlash(name)), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func sortedNames(files map[string]string) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
