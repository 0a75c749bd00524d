package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// An installedDocument is one agent in the home.
type installedDocument struct {
	Agent        string `json:"agent"`
	Version      string `json:"version"`
	BundleDigest string `json:"bundle_digest"`
	Path         string `json:"path"`
	// Replaced is the version that was there before; Error is why the agent
	// cannot be launched. Both are absent mostly.
	Replaced *string `json:"replaced,omitempty"`
	Error    string  `json:"error,omitempty"`
}

func (a *app) agentInstallCommand() *cobra.Command {
	return &cobra.Command{
		Use: "install BUNDLE", Short: "Install an agent, so that other agents can be allowed to launch it",
		Long: `Install verifies a bundle and compiles it as a launch would, so that its first
launch takes no longer than others, and copies it into the home. It takes the
place of what is installed under the same name, in one step, be that newer or
older. Other agents launch it by its name, if agents = ["NAME"] is left of their
policies; rlp launch takes the path that is printed.`,
		Example: "  rlp agent install agents/critic\n  rlp agent install critic-1.2.0.tar.gz --tenant acme",
		Args:    exactly("a BUNDLE"),
		RunE:    func(c *cobra.Command, args []string) error { return a.install(c.Context(), args[0]) },
	}
}

func (a *app) install(ctx context.Context, path string) error {
	c, err := a.compose(path, compose.Flags{})
	if err != nil {
		return err
	}
	b, m := c.Bundle, c.Bundle.Manifest
	if err := run.CheckModule(m.Agent.String(), b.Wasm, selfPath); err != nil {
		return inputErr(err)
	}
	if err := a.compileFor(ctx, c); err != nil {
		return err
	}
	d := installedDocument{Agent: m.Agent.String(), Version: m.Version, BundleDigest: b.Digest}
	old := describeAgent(c.Home, d.Agent)
	if d.Path, err = b.Install(c.Home.Agents()); err != nil {
		return inputErr(err)
	}
	if old != nil {
		d.Replaced = &old.Version
	}
	if a.json {
		return a.printJSON(d)
	}
	if a.quiet {
		return nil
	}
	fmt.Fprintf(a.stdout, "%s %s is installed: %s\n", d.Agent, printable(d.Version), printable(d.Path))
	if old != nil && old.BundleDigest != d.BundleDigest {
		fmt.Fprintf(a.stdout, "it takes the place of %s %s\n", d.Agent, printable(old.Version))
	}
	return nil
}

// compileFor leaves the native code of an agent where its launches look for it.
func (a *app) compileFor(ctx context.Context, c *compose.Composition) error {
	name := c.Bundle.Manifest.Agent.String()
	uncached, err := run.Compile(ctx, run.Compilation{
		Agent: name, Module: c.Bundle.Wasm, SHA256: c.Bundle.WasmSHA256, Tenant: c.Home.Tenant(), CacheDir: c.Home.Cache(),
		Compiler: a.self, Slow: progress(a.stderr, "compiling "+name+" ..."),
	})
	if err != nil {
		return &statusError{Status: run.CompileStatus(err), Err: err}
	}
	if uncached != nil {
		fmt.Fprintf(a.stderr, "rlp: each launch of %s will compile it anew: %s\n", name, printable(uncached.Error()))
	}
	return nil
}

func (a *app) agentListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Print the installed agents", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			list, err := installedAgents(h)
			if err != nil {
				return inputErr(err)
			}
			if a.json {
				return a.printJSON(list)
			}
			for _, d := range list {
				line := fmt.Sprintf("%-20s %-10s %s", printable(d.Agent), printable(d.Version), printable(d.Path))
				if d.Error != "" {
					line += "\n  cannot be launched: " + printable(d.Error)
				}
				fmt.Fprintln(a.stdout, line)
			}
			return nil
		},
	}
}

// installedAgents are all of the tenant's, verified.
func installedAgents(h home.Home) ([]installedDocument, error) {
	names, err := bundles.Installed(h.Agents())
	if err != nil {
		return nil, err
	}
	list := []installedDocument{}
	for _, name := range names {
		if d := describeAgent(h, name); d != nil {
			list = append(list, *d)
		}
	}
	return list, nil
}

// describeAgent is what is installed under a name; nil if nothing is.
func describeAgent(h home.Home, name string) *installedDocument {
	d := &installedDocument{Agent: name, Path: filepath.Join(h.Agents(), name)}
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

func (a *app) agentRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove AGENT...", Short: "Remove installed agents", Args: atLeastOne("AGENT"),
		RunE: func(_ *cobra.Command, names []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			return a.removeAgents(h, names)
		},
	}
}

func (a *app) removeAgents(h home.Home, names []string) error {
	for _, name := range names {
		if _, err := ident.ParseAgent(name); err != nil {
			return usagef("rlp agent remove: %w", err)
		}
	}
	removed := []string{}
	for _, name := range names {
		err := bundles.Remove(h.Agents(), name)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("no agent %s is installed; rlp agent list shows all", name)
		}
		if err != nil {
			return inputErr(err)
		}
		removed = append(removed, name)
		if !a.json && !a.quiet {
			fmt.Fprintf(a.stdout, "%s is removed\n", name)
		}
	}
	if a.json {
		return a.printJSON(map[string]any{"removed": removed})
	}
	return nil
}
