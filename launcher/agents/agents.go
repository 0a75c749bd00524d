// Package agents builds agents from source, and installs, lists and removes those of
// a home.
package agents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// An Installed is one agent in a home.
type Installed struct {
	Agent        string `json:"agent"`
	Version      string `json:"version"`
	BundleDigest string `json:"bundle_digest"`
	Path         string `json:"path"`
	// Replaced is the version that was there before; Error is why the agent
	// cannot be launched. Both are absent mostly.
	Replaced *string `json:"replaced,omitempty"`
	Error    string  `json:"error,omitempty"`
}

// An Installer installs for a reader.
type Installer struct {
	*compose.Reader
	Self     func() (string, error)           // the program that looks into modules
	Compiler func() (string, error)           // the program that compiles them
	Slow     func(agent string) func() func() // as of a [run.Spec]
}

// Install verifies the bundle at a path, compiles it as a launch would, and puts it in
// the place of what is installed under its name, which is was; nil: nothing.
func (in Installer) Install(ctx context.Context, path string) (d, was *Installed, err error) {
	c, err := in.Compose(path, compose.Flags{})
	if err != nil {
		return nil, nil, err
	}
	if at := compose.Locate(c.Home, path); at != path {
		return nil, nil, compose.InputErr(fmt.Errorf("there is no file or folder %s here; the agent of that name is installed "+
			"already: %s", path, at))
	}
	b, m := c.Bundle, c.Bundle.Manifest
	if !m.Program {
		if err := run.CheckModule(m.Agent.String(), b.Wasm, in.Self); err != nil {
			return nil, nil, compose.InputErr(err)
		}
		if err := in.compile(ctx, c); err != nil {
			return nil, nil, err
		}
	}
	d = &Installed{Agent: m.Agent.String(), Version: m.Version, BundleDigest: b.Digest}
	was = Describe(c.Home, d.Agent)
	if d.Path, err = b.Install(c.Home.Agents()); err != nil {
		return nil, nil, compose.InputErr(err)
	}
	if was != nil {
		d.Replaced = &was.Version
	}
	return d, was, nil
}

// compile leaves the native code of an agent where its launches look for it.
func (in Installer) compile(ctx context.Context, c *compose.Composition) error {
	name := c.Bundle.Manifest.Agent.String()
	uncached, err := run.Compile(ctx, run.Compilation{
		Agent: name, Module: c.Bundle.Wasm, SHA256: c.Bundle.WasmSHA256, Tenant: c.Home.Tenant(), CacheDir: c.Home.Cache(),
		Compiler: in.Compiler, Slow: in.Slow(name),
	})
	if err != nil {
		return &compose.Error{Status: run.CompileStatus(err), Err: err}
	}
	if uncached != nil {
		in.Say(fmt.Sprintf("each launch of %s will compile it anew: %s", name, printable.Line(uncached.Error())))
	}
	return nil
}

// List is all of the tenant's, verified.
func List(h home.Home) ([]Installed, error) {
	names, err := bundles.Installed(h.Agents())
	if err != nil {
		return nil, err
	}
	list := []Installed{}
	for _, name := range names {
		if d := Describe(h, name); d != nil {
			list = append(list, *d)
		}
	}
	return list, nil
}

// Describe is what is installed under a name; nil if nothing is.
func Describe(h home.Home, name string) *Installed {
	d := &Installed{Agent: name, Path: filepath.Join(h.Agents(), name)}
	if _, err := os.Lstat(d.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	b, err := bundles.Open(d.Path)
	switch {
	case err != nil:
		d.Error = err.Error()
		return d
	case b.Manifest.Agent.String() != name:
		d.Error = fmt.Sprintf("it calls itself %s; install it again", b.Manifest.Agent)
	}
	d.Version, d.BundleDigest = b.Manifest.Version, b.Digest
	return d
}

// Named is how commands name the bundle of a digest: by the agent's id where it is
// installed, unless something else here is called so; "": it is not.
func Named(h home.Home, agent, digest string) string {
	d := Describe(h, agent)
	switch {
	case d == nil || d.BundleDigest != digest || d.Error != "":
		return ""
	case compose.Locate(h, agent) == d.Path:
		return agent
	}
	return d.Path
}

// Remove removes installed agents one by one, and says which are.
func Remove(h home.Home, names []string) (removed []string, err error) {
	for _, name := range names {
		if _, err := ident.ParseAgent(name); err != nil {
			return nil, compose.Usagef("%w", fmt.Errorf("rlp agent remove: %w", err))
		}
	}
	for _, name := range names {
		err := bundles.Remove(h.Agents(), name)
		if errors.Is(err, fs.ErrNotExist) {
			return removed, fmt.Errorf("no agent %s is installed; rlp agent list shows all", name)
		}
		if err != nil {
			return removed, compose.InputErr(err)
		}
		removed = append(removed, name)
	}
	return removed, nil
}
