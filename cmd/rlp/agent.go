package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/run"
)

func (a *app) agentCommand() *cobra.Command {
	c := &cobra.Command{Use: "agent", Short: "Build, install and inspect agents", Args: cobra.NoArgs, RunE: showHelp}
	c.AddCommand(a.agentBuildCommand(), a.agentInstallCommand(), a.agentListCommand(), a.agentInspectCommand(),
		a.agentRemoveCommand())
	return c
}

func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

func (a *app) agentBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build DIR...",
		Short: "Build agent sources into DIR/agent.bundle",
		Long: `Build compiles the Go program in each DIR for wasip1, fills the digests into its
manifest.toml, and writes DIR/agent.bundle.`,
		Example: "  rlp agent build agents/notes_digest",
		Args:    atLeastOne("DIR"),
		RunE: func(c *cobra.Command, dirs []string) error {
			for _, dir := range dirs {
				if err := a.buildAgent(c.Context(), dir); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) buildAgent(ctx context.Context, dir string) error {
	if err := a.reader().OwnPaths(dir); err != nil {
		return err
	}
	wasm, err := a.compileAgent(ctx, dir)
	if err != nil {
		return err
	}
	if err := run.CheckModule(dir, wasm, selfPath); err != nil {
		return inputErr(err)
	}
	out, err := bundles.Build(dir, wasm)
	if err != nil {
		return inputErr(err)
	}
	b, err := bundles.Open(out)
	if err != nil {
		return inputErr(fmt.Errorf("opening what was built: %w", err))
	}
	if a.json {
		return a.printJSON(map[string]any{
			"agent": b.Manifest.Agent.String(), "bundle": out, "bundle_digest": b.Digest,
			"wasm_bytes": len(wasm),
		})
	}
	if !a.quiet {
		fmt.Fprintf(a.stdout, "%s %s: %s (%.1f MB)\n", b.Manifest.Agent.String(), printable(b.Manifest.Version), out,
			float64(len(wasm))/1e6)
	}
	return nil
}

// compileAgent runs the Go toolchain on the source folder.
func (a *app) compileAgent(ctx context.Context, dir string) ([]byte, error) {
	if _, err := os.Stat(filepath.Join(dir, "manifest.toml")); err != nil {
		return nil, inputErr(fmt.Errorf("building %s: no manifest.toml there: %w", dir, err))
	}
	tmp, err := os.MkdirTemp("", "rlp-build-")
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", dir, err)
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "agent.wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(append([]string{}, a.env...), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		if _, missing := err.(*exec.Error); missing {
			return nil, &statusError{
				Status: launcher.StatusUnavailable,
				Err:    fmt.Errorf("building %s: the go command is needed and not there: %w", dir, err),
			}
		}
		return nil, inputErr(fmt.Errorf("building %s: go build: %w\n%s", dir, err, strings.TrimSpace(string(text))))
	}
	return os.ReadFile(out)
}

// atLeastOne is the argument rule of commands that take one thing or more.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("%s needs a %s; see %s --help", c.CommandPath(), what, c.CommandPath())
		}
		return nil
	}
}

// exactly is the argument rule of commands that take these things and no more.
func exactly(what ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != len(what) {
			return usagef("%s takes %s; see %s --help", c.CommandPath(), strings.Join(what, " and "), c.CommandPath())
		}
		return nil
	}
}
