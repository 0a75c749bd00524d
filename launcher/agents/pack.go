package agents

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// A Packed is a folder that was made around a module.
type Packed struct {
	Agent        string   `json:"agent"`
	Dir          string   `json:"dir"`
	Files        []string `json:"files"`
	Drafted      []string `json:"drafted"` // keys of the policy that it drafts, and grants none of
	Bundle       string   `json:"bundle"`
	BundleDigest string   `json:"bundle_digest"`
}

// Pack makes a folder and a bundle around the module at a path. name "" is one made
// of the file's, dir "" a folder of that name here.
func Pack(r *compose.Reader, path, name, dir string, self func() (string, error)) (*Packed, error) {
	id, err := ident.AgentOf(filepath.Base(path))
	if name != "" {
		id, err = ident.ParseAgent(name)
	}
	if err != nil {
		return nil, compose.Usagef("%w", fmt.Errorf("rlp agent pack: %w; write --name NAME", err))
	}
	if dir == "" {
		dir = id.String()
	}
	if err := r.OwnPaths(path, dir); err != nil {
		return nil, err
	}
	wasm, err := readModule(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return nil, compose.InputErr(fmt.Errorf("packing %s: %w", printable.Line(path), err))
	}
	if !bytes.HasPrefix(wasm, []byte("\x00asm")) {
		return nil, compose.InputErr(fmt.Errorf("packing %s: this is no WebAssembly module; write the .wasm that a compiler made",
			printable.Line(path)))
	}
	if err := run.CheckModule(id.String(), wasm, self); err != nil {
		return nil, compose.InputErr(err)
	}
	imports, err := guest.Imports(wasm)
	if err != nil {
		return nil, compose.InputErr(fmt.Errorf("packing %s: %w", printable.Line(path), err))
	}
	module := id.String() + ".wasm"
	drafted, keys := draft(module, imports)
	files := map[string]string{
		"manifest.toml": manifestAround(id.String(), module), bundles.DefaultPolicyName: drafted, module: string(wasm),
	}
	if err := makeFolder(dir, files); err != nil {
		return nil, err
	}
	b, err := around(dir, wasm, self)
	if err != nil {
		return nil, err
	}
	return &Packed{id.String(), dir, sortedNames(files), keys, b.Bundle, b.BundleDigest}, nil
}

func manifestAround(name, module string) string {
	return fmt.Sprintf(`[agent]
name = %q
version = "0.1.0"
kind = "wasm32-wasip1"
entry_wasm = { path = %q }

[caps]
file = %q

# The module is made elsewhere: copy a new one here, then rlp agent build. With
# command = [...] rlp agent build makes it.
[build]
output = %q
`, name, module, bundles.DefaultPolicyName, module)
}

// examples are lines of a policy, as an author may grant them.
var examples = map[caps.Family]string{
	caps.FS:      `fs = ["/home/me/notes"]   # to read; fs_rw = [...] to write`,
	caps.Net:     `net = ["api.example.com"]`,
	caps.Time:    `time = true`,
	caps.KBRead:  `kb_read = ["notes"]`,
	caps.KBWrite: `kb_write = ["drafts"]`,
	caps.Secrets: `secrets = [{ id = "runloop/mail/key", hosts = ["api.example.com"] }]`,
	caps.Model:   `model = ["openai:*"]`,
	caps.Exec:    `exec = ["/usr/bin/grep"]`,
	caps.Env:     `env = ["LANG"]`,
	caps.MCP:     `mcp = ["github"]`,
	caps.Agents:  `agents = ["critic"]`,
}

// draft is a policy that grants nothing, with a comment for each family of which the
// module imports a call, and their keys.
func draft(module string, imports []guest.Import) (text string, keys []string) {
	keys = []string{} // a list in JSON
	var b strings.Builder
	fmt.Fprintf(&b, "# Drafted from what %s imports: what it can ask for, which is not what it should get.\n"+
		"# Nothing is granted. Take the # from the lines that it needs, write what you grant, then: rlp agent build\n"+
		"schema = \"0.2\"\n\n[capabilities]\n", module)
	for f := range caps.NumFamilies {
		ours, wasi := importsOf(f, imports)
		if len(ours)+len(wasi) == 0 {
			continue
		}
		keys = append(keys, f.String())
		why := strings.Join(ours, ", ")
		if len(ours) == 0 {
			why = strings.Join(wasi, ", ") + " of WASI, which nearly every program imports, used or not"
		}
		fmt.Fprintf(&b, "\n# It imports %s.\n# %s\n", why, examples[f])
	}
	if len(keys) == 0 {
		b.WriteString("# It imports nothing that needs a capability.\n")
	}
	return b.String(), keys
}

// importsOf are the calls of a family among the imports: those of runloop_v1, and
// those of WASI.
func importsOf(f caps.Family, imports []guest.Import) (ours, wasi []string) {
	tools := caps.Tools()
	for _, im := range imports {
		if !slices.ContainsFunc(tools, func(t caps.ToolInfo) bool { return t.Family == f && t.Name == im.Name }) {
			continue
		}
		if im.Module == hostcalls.ImportModule {
			ours = append(ours, im.Name)
		} else {
			wasi = append(wasi, im.Name)
		}
	}
	return ours, wasi
}
