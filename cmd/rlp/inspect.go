//go:build !slim

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/guest"
	"runloop.dev/rlp/launcher/run"
)

type importDocument struct {
	Module string `json:"module"`
	Name   string `json:"name"`
	Family string `json:"family,omitempty"`
}

func (a *app) agentInspectCommand() *cobra.Command {
	return &cobra.Command{
		Use: "inspect BUNDLE", Short: "Print what a bundle is made of and every host function that it could ever call",
		Args: exactly("a BUNDLE"),
		RunE: func(_ *cobra.Command, args []string) error { return a.inspect(args[0]) },
	}
}

func (a *app) inspect(path string) error {
	if err := a.ownPaths(path); err != nil {
		return err
	}
	b, err := bundles.Open(path)
	if err != nil {
		return inputErr(err)
	}
	imports, err := guest.Imports(b.Wasm)
	if err != nil {
		return inputErr(err)
	}
	list := importList(imports)
	m := b.Manifest
	refused := ""
	if err := run.CheckModule(m.Agent.String(), b.Wasm, selfPath); err != nil {
		refused = err.Error()
	}
	if a.json {
		return a.printJSON(map[string]any{
			"agent": m.Agent.String(), "version": m.Version, "description": m.Description, "bundle_digest": b.Digest,
			"entry_wasm": m.Entry.Path, "wasm_sha256": b.WasmSHA256, "wasm_bytes": len(b.Wasm), "imports": list,
			"policy": string(b.Policy), "signed": b.Signed, "findings": orNone(b.Findings), "refused": refused,
			"tools": toolDocuments(b.Tools),
		})
	}
	fmt.Fprintf(a.stdout, "%s %s\n%s\n", m.Agent, printable(m.Version), printable(m.Description))
	fmt.Fprintf(a.stdout, "bundle  %s\nmodule  %s, %d bytes, sha256 %s\n", b.Digest, printable(m.Entry.Path), len(b.Wasm), b.WasmSHA256)
	fmt.Fprintln(a.stdout, "imports")
	for _, im := range list {
		line := "  " + printable(im.Module+"."+im.Name)
		if im.Family != "" {
			line += "  (needs " + im.Family + ")"
		}
		fmt.Fprintln(a.stdout, line)
	}
	a.inspectTools(b.Tools)
	for _, f := range b.Findings {
		fmt.Fprintln(a.stdout, printable(f.String()))
	}
	if refused != "" {
		fmt.Fprintln(a.stdout, "a launch would refuse it: "+printable(refused))
	}
	return nil
}

func importList(imports []guest.Import) []importDocument {
	families := map[string]string{}
	for _, known := range hostcalls.Imports() {
		if known.Gated {
			families[known.Name] = known.Family.String()
		}
	}
	list := []importDocument{}
	for _, im := range imports {
		d := importDocument{Module: im.Module, Name: im.Name}
		if im.Module == hostcalls.ImportModule {
			d.Family = families[im.Name]
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b importDocument) int {
		return cmp.Or(strings.Compare(a.Module, b.Module), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(list) // a module may import one function twice
}

func orNone(f []bundles.Finding) []bundles.Finding {
	if f == nil {
		return []bundles.Finding{}
	}
	return f
}
