package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// execute does what the arguments say.
func (a *app) execute(ctx context.Context) error {
	defer func() {
		if a.madeUp != "" {
			_ = os.RemoveAll(a.madeUp) // nothing of it is anybody's
		}
	}()
	if len(a.args) > 0 && a.args[0] == "launch" { // without the commands beside it; cobra says what is wrong with one
		if f, fs, err := a.parseLaunch(); err == nil && oneBundle(fs.Args(), fs.ArgsLenAtDash()) == nil {
			return a.launch(ctx, fs.Arg(0), fs.Args()[1:], f)
		}
	}
	a.hear()
	root := rootCommand(a)
	root.SetArgs(a.args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return root.ExecuteContext(ctx)
}

// plainly says what a flag takes, where the parser quotes a function of its own.
func plainly(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	takes := map[string]string{
		"bool": "true or false", "duration": "a time such as 30s or 5m", "int": "a whole number",
		"uint64": "a whole number that is not negative",
	}
	what, known := takes[bad.GetFlag().Value.Type()]
	if !known {
		return err
	}
	if errors.Is(err, strconv.ErrRange) {
		what += " that is not so large"
	}
	return fmt.Errorf("--%s takes %s, not %q", bad.GetFlag().Name, what, bad.GetValue())
}

func rootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "rlp",
		Short: "Launch untrusted WASM agents with exactly the capabilities you left them",
		Long: `rlp launches untrusted WASM agents with exactly the capabilities that their
operator left them, and records every decision.

A bundle says what it needs (policy.caps); you may only take away
(~/.runloop/caps/overrides/<agent>.toml). Everything else is denied, and says why.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
	}
	showVersion := root.Flags().Bool("version", false, "print the version of rlp")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if *showVersion {
			return printVersion(a)
		}
		return c.Help()
	}
	a.register(root.PersistentFlags())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if ours := foreignFlag(err); ours != "" {
			return usagef("%w; here it is written %s", plainly(err), ours)
		}
		return usagef("%w; see %s --help", plainly(err), c.CommandPath())
	})
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		a.homeSet = c.Flags().Changed("home")
		if onlyReads(c) {
			return emptyHome(a)
		}
		return nil
	}
	root.AddCommand(commands(a)...)
	nearWords(root)
	fitHelp(root)
	if len(a.args) > 0 && (a.args[0] == cobra.ShellCompRequestCmd || a.args[0] == cobra.ShellCompNoDescRequestCmd) {
		completeWords(a, root)
	}
	return root
}

// invoke does one invocation and returns its exit status.
func invoke(ctx context.Context, env environment) int {
	a := &app{environment: env}
	if code, done := a.elsewhere(); done {
		return code
	}
	err := a.execute(ctx)
	a.hear()
	return a.finish(interrupted(ctx, err))
}
