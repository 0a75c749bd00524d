package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
)

// An SBOM is a CycloneDX document of what a program was linked from. It is what
// the program says of itself, so it names neither more nor less than is in it.
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     bomMetadata  `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type bomMetadata struct {
	Component component `json:"component"`
}

type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	Scope      string     `json:"scope,omitempty"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn,omitempty"`
}

// sbom is the document of a target, read out of its program.
func (r release) sbom(target, program string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("reading what %s was built from: %w", program, err)
	}
	text, err := json.MarshalIndent(document(info, r.printed.version, target), "", "  ")
	return append(text, '\n'), err
}

// document lists the modules of a program and the standard library.
func document(info *debug.BuildInfo, version, target string) bom {
	system, machine, _ := strings.Cut(target, "/")
	main := component{
		Type: "application", Name: "rlp", Version: version, PURL: purl(info.Main.Path, "v"+version) + "?goos=" + system +
			"&goarch=" + machine,
		Properties: []property{{"cdx:gomod:build:env:GOOS", system}, {"cdx:gomod:build:env:GOARCH", machine}},
	}
	main.Ref = main.PURL
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: bomMetadata{main}}
	std := purl("std", strings.TrimPrefix(info.GoVersion, "go"))
	b.Components = []component{{
		Ref: std, Type: "library", Name: "std", Version: info.GoVersion, Scope: "required",
		PURL: std,
	}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component{Type: "library", Name: m.Path, Version: m.Version, Scope: "required", PURL: purl(m.Path, m.Version)}
		c.Ref = c.PURL
		if m.Sum != "" { // as go.sum has it: of a module's tree, which is no file
			c.Properties = []property{{"runloop:go:sum", m.Sum}}
		}
		b.Components = append(b.Components, c)
	}
	slices.SortFunc(b.Components, func(x, y component) int { return strings.Compare(x.Ref, y.Ref) })
	of := dependency{Ref: main.Ref}
	for _, c := range b.Components {
		of.On = append(of.On, c.Ref)
	}
	b.Dependencies = []dependency{of}
	return b
}

// purl is the package URL of a Go module.
func purl(module, version string) string {
	return "pkg:golang/" + module + "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
}
