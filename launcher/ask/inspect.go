package ask

import (
	"cmp"
	"slices"
	"strings"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/launcher/places"
	"runloop.dev/rlp/launcher/run"
)

// An Inspection is what a bundle is made of, and every host function that it could
// ever call.
type Inspection struct {
	Agent       string            `json:"agent"`
	Program     *Program          `json:"entry_program,omitempty"` // in the place of a module
	Digest      string            `json:"bundle_digest"`
	Description string            `json:"description"`
	Entry       string            `json:"entry_wasm"`
	Findings    []bundles.Finding `json:"findings"`
	Imports     []Import          `json:"imports"`
	Policy      string            `json:"policy"`
	Refused     string            `json:"refused"` // why a launch would refuse it
	Signed      bool              `json:"signed"`
	Tools       []Tool            `json:"tools"`
	Version     string            `json:"version"`
	Bytes       int64             `json:"wasm_bytes"`
	SHA256      string            `json:"wasm_sha256"`
}

// A Program is what an agent is that is no module.
type Program struct {
	Path   string   `json:"path"` // in the bundle, or an absolute one of the machine
	Args   []string `json:"args"`
	SHA256 string   `json:"sha256"`
}

// An Import is a host function that a module imports.
type Import struct {
	Module string `json:"module"`
	Name   string `json:"name"`
	Family string `json:"family,omitempty"`
}

// A Tool is a tool of a bundle.
type Tool struct {
	ID                   string   `json:"id"`
	Description          string   `json:"description"`
	Transport            string   `json:"transport"`
	Target               string   `json:"target"`
	Capabilities         []string `json:"capabilities"` // declared, then what the transport needs
	Secrets              []string `json:"secrets"`
	RequiresConfirmation bool     `json:"requires_confirmation"`
	Tags                 []string `json:"tags"`
}

func toolsOf(tools []bundles.Tool) []Tool {
	list := make([]Tool, 0, len(tools))
	for i := range tools {
		t := &tools[i]
		d := Tool{
			ID: t.ID, Description: t.Description, Secrets: orEmpty(t.Secrets), RequiresConfirmation: t.Confirm,
			Tags:         orEmpty(t.Tags),
			Capabilities: []string{},
		}
		if t.Exec != nil {
			d.Transport, d.Target = "exec", t.Exec.Command
		} else {
			d.Transport, d.Target = "http", t.HTTP.Method+" "+t.HTTP.URL
		}
		for _, p := range t.Placed {
			d.Capabilities = append(d.Capabilities, p.Domain+"{"+p.Param+"}")
		}
		for _, e := range append(t.Capabilities, t.Implied()...) {
			d.Capabilities = append(d.Capabilities, e.Grant.String())
		}
		list = append(list, d)
	}
	return list
}

// Inspect looks into a bundle. compiler is the program that checks modules.
func Inspect(b *bundles.Bundle, compiler func() (string, error)) (*Inspection, error) {
	m := b.Manifest
	d := &Inspection{
		Agent: m.Agent.String(), Version: m.Version, Description: m.Description, Digest: b.Digest,
		Imports: []Import{}, Policy: string(b.Policy), Signed: b.Signed, Findings: b.Findings, Tools: toolsOf(b.Tools),
	}
	if d.Findings == nil {
		d.Findings = []bundles.Finding{}
	}
	if m.Program {
		d.Program = &Program{m.Entry.Path, orEmpty(m.Args), m.Entry.SHA256}
		return d, nil
	}
	imports, err := guest.Imports(b.Wasm)
	if err != nil {
		return nil, hostErr(err)
	}
	d.Entry, d.SHA256, d.Bytes, d.Imports = m.Entry.Path, b.WasmSHA256, int64(len(b.Wasm)), importList(imports)
	if err := run.CheckModule(d.Agent, b.Wasm, compiler); err != nil {
		d.Refused = err.Error()
	}
	return d, nil
}

// Without is d for somebody who is not told where the home is.
func (d *Inspection) Without(n *places.Names) *Inspection {
	told := *d
	told.Policy = withheld(n, d.Policy)
	told.Findings = slices.Clone(d.Findings)
	for i := range told.Findings {
		told.Findings[i].Path = n.File(told.Findings[i].Path)
	}
	return &told
}

func importList(imports []guest.Import) []Import {
	families := map[string]string{}
	for _, known := range hostcalls.Imports() {
		if known.Gated {
			families[known.Name] = known.Family.String()
		}
	}
	list := []Import{}
	for _, im := range imports {
		d := Import{Module: im.Module, Name: im.Name}
		if im.Module == hostcalls.ImportModule {
			d.Family = families[im.Name]
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Import) int {
		return cmp.Or(strings.Compare(a.Module, b.Module), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(list) // a module may import one function twice
}
