package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/agents"
	"runloop.dev/rlp/launcher/lint"
)

func agentCommand(a *app) *cobra.Command {
	c := &cobra.Command{Use: "agent", Short: "Build, install and inspect agents", Args: cobra.NoArgs, RunE: showHelp}
	c.AddCommand(agentNewCommand(a), agentBuildCommand(a), agentPackCommand(a), agentInstallCommand(a),
		agentListCommand(a), agentInspectCommand(a), agentRemoveCommand(a))
	return c
}

func agentNewCommand(a *app) *cobra.Command {
	var lang, dir string
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a folder with an agent in it that builds, tests and launches at once",
		Long: `New writes a first agent, its manifest, its policy, its test and the SDK of its
language into the folder NAME, or DIR. Nothing is fetched: the folder builds
without a network. What is there already is not overwritten.

go    needs Go
c     needs clang, lld, wasi-libc and libclang-rt-14-dev-wasm32 (Debian's names)
rust  needs rustc and cargo, with the target wasm32-wasip1 or, as in Debian's
      libstd-rust-dev-wasm32, wasm32-wasi`,
		Example: "  rlp agent new greeter && rlp agent build greeter && rlp launch greeter -- Ada\n" +
			"  rlp agent new greeter --lang c --dir agents/greeter",
		Args: exactly("a NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := agents.New(a.reader(), args[0], lang, dir)
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(m)
			case !a.quiet:
				test := "go test ."
				if lang != "go" {
					test = "sh test.sh"
				}
				fmt.Fprintf(a.stdout, "%s is made. Begin with\n  cd %s\n  rlp agent build\n  rlp launch . -- Ada\n  %s\n", m.Agent,
					printable(m.Dir), test)
			}
			return nil
		},
	}
	c.Flags().StringVar(&lang, "lang", "go", "the language: "+strings.Join(agents.Langs(), ", "))
	c.Flags().StringVar(&dir, "dir", "", "the folder, new or empty (default: NAME)")
	return c
}

func agentBuildCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "build [DIR...]",
		Short: "Build agent sources into DIR/agent.bundle",
		Long: `Build makes the module of each DIR (default: this folder), fills the digests into
its manifest.toml, and writes DIR/agent.bundle.

Where manifest.toml has [build], its command is run in DIR, without a shell, with
your rights, and makes output; without a command, output is there already:

    [build]
    command = ["clang", "--target=wasm32-wasi", "-O2", "-o", "agent.wasm", "main.c"]
    output = "agent.wasm"

Without [build] the Go program in DIR is compiled for wasip1. Build what you
trust; of others launch the bundle.

What rlp caps lint finds in the bundle is said on stderr; its errors end the command
with 1.`,
		Example: "  rlp agent build\n  rlp agent build agents/notes_digest agents/critic",
		RunE: func(c *cobra.Command, dirs []string) error {
			if len(dirs) == 0 {
				dirs = []string{"."}
			}
			var built []*agents.Built
			for _, dir := range dirs {
				b, err := agents.Build(c.Context(), a.reader(), dir, selfPath)
				if err != nil {
					return err
				}
				built = append(built, b)
			}
			l, err := lint.Files(a.reader(), lint.Query{Paths: dirs, Self: selfPath})
			if err != nil {
				return err
			}
			for _, line := range l.Told(a.quiet) {
				a.say(line)
			}
			for _, b := range built {
				if status := l.Status(false); status == launcher.StatusOK || a.json {
					err = errors.Join(err, printBuilt(a, b))
				}
			}
			return ending(l.Status(false), err)
		},
	}
}

func agentPackCommand(a *app) *cobra.Command {
	var name, dir string
	c := &cobra.Command{
		Use:   "pack MODULE",
		Short: "Make a folder and a bundle around a module, with a policy drafted from its imports",
		Long: `Pack writes a manifest, a policy and a copy of the module into a new folder, and a
bundle of them. The policy grants nothing: what the module imports stands there as
comments, with the import that is the reason of each. Take the # from what the
module needs, write what you grant, and run rlp agent build.`,
		Example: "  rlp agent pack indexer.wasm\n  rlp agent pack build/out.wasm --name indexer --dir agents/indexer",
		Args:    exactly("a MODULE"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := agents.Pack(a.reader(), args[0], name, dir, selfPath)
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(p)
			case a.quiet:
				return nil
			}
			fmt.Fprintf(a.stdout, "%s is packed: %s\n", p.Agent, printable(p.Bundle))
			if len(p.Drafted) > 0 {
				fmt.Fprintf(a.stdout, "It is granted nothing. Its imports could use: %s. Edit\n  %s\n  rlp agent build %s\n",
					strings.Join(p.Drafted, ", "), printable(filepath.Join(p.Dir, "policy.caps")), printable(p.Dir))
			}
			return nil
		},
	}
	c.Flags().StringVar(&name, "name", "", "the agent's id (default: made of the file's name)")
	c.Flags().StringVar(&dir, "dir", "", "the folder, new or empty (default: the agent's id)")
	return c
}

func printBuilt(a *app, b *agents.Built) error {
	switch {
	case a.json:
		return a.printJSON(b)
	case a.quiet:
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, "%s %s: %s (%.1f MB)\n", b.Agent, printable(b.Version), b.Bundle,
		float64(b.WasmBytes)/1e6)
	return err
}
