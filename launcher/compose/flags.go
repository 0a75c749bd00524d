package compose

import (
	"strings"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// Flags are the flags by which one invocation narrows, and fills in the
// placeholders.
type Flags struct {
	Overrides, Profiles, Allow, Deny, Limits, Params []string

	Bare Bare     // whether the path may be of a module without a bundle
	Base []string // what such a module asks for where that is [BaseOfModule]
}

// Bare says whether a path may be of a module without a bundle, and what such a
// module asks for. A request that comes over HTTP, MCP or from an agent has no say.
type Bare uint8

// What a module without a bundle asks for.
const (
	NoModule      Bare = iota // nothing: only bundles are taken
	BaseOfModule              // Flags.Base
	AllowOfModule             // Flags.Allow, which of a bundle is a layer
)

// open reads the bundle at a path, or the module where f takes one.
func (f *Flags) open(path string) (*bundles.Bundle, error) {
	if f.Bare == NoModule {
		return bundles.Open(path)
	}
	return bundles.OpenOrModule(path)
}

// ofModule is what f says that a module asks for, with its paths that are not
// written as they are meant. What it takes for that is no layer any more.
func (f *Flags) ofModule(domains []string) (entries []caps.Entry, findings []policy.Finding, err error) {
	flag, list := "Base", f.Base
	if f.Bare == AllowOfModule {
		flag, list, f.Allow = "--allow", f.Allow, nil
	}
	if entries, err = granted(flag, list, domains); err != nil {
		return nil, nil, err
	}
	for i, e := range entries {
		switch e.Grant.Family {
		case caps.Tool:
			return nil, nil, Usagef("%s: every module may use each tool for what it holds; --deny %s takes one away",
				e.Pos.File, list[i])
		case caps.FS, caps.Exec:
			findings = append(findings, dotted(e, list[i])...)
		}
	}
	return entries, findings, nil
}

// dotted is the finding for a path with ".." in it.
func dotted(e caps.Entry, text string) []policy.Finding {
	path := strings.SplitN(text, ":", 3)[2]
	if _, dotdot, err := caps.CleanPath(path); err != nil || !dotdot {
		return nil
	}
	code := policy.CodePathDotDot
	return []policy.Finding{{
		Path: e.Pos.File, Severity: code.Severity(), Code: code,
		Message: path + " has .. in it and is read as " + e.Grant.Scope, Hint: "write " + e.Grant.Scope,
	}}
}
