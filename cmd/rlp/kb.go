package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/knowledge"
)

func (a *app) kbCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "kb", Short: "Read, change, search and keep the knowledge base", Args: cobra.NoArgs, RunE: showHelp,
		Long: `What agents know: values under keys, in domains. Every command works beside
running agents.

Personal data is shown masked unless you say --raw. A backup holds it as it is.`,
	}
	c.AddCommand(
		a.kbDomainsCommand(), a.kbGetCommand(), a.kbPutCommand(), a.kbDeleteCommand(), a.kbListCommand(), a.kbSearchCommand(),
		a.kbWhyCommand(), a.kbVerifyCommand(), a.kbBackupCommand(), a.kbRestoreCommand(), a.kbImportCommand(),
	)
	return c
}

// withKB opens the store for one command of the operator's.
func (a *app) withKB(ctx context.Context, o kb.Origin, do func(*knowledge.Session) error) error {
	return knowledge.With(ctx, a.reader(), o, do)
}

// byOperator is where values come from that the operator puts.
func byOperator(from string) kb.Origin {
	if from == "" {
		from = "operator"
	}
	return kb.Origin{Source: from, Label: kb.Trusted}
}

// place is the DOMAIN and KEY of a command, as two arguments or as one.
func place(args []string) (domain, key string) {
	if len(args) == 2 {
		return args[0], args[1]
	}
	domain, key, _ = strings.Cut(args[0], "/")
	return domain, key
}

// onePlace is the argument rule of commands that take a DOMAIN and a KEY.
func onePlace(c *cobra.Command, args []string) error {
	if len(args) == 2 || len(args) == 1 && strings.Contains(args[0], "/") {
		return nil
	}
	return usagef("%s takes a DOMAIN and a KEY; see %s --help", c.CommandPath(), c.CommandPath())
}

// readValue is the value of a put: the text itself, @FILE, or - for stdin.
func (a *app) readValue(arg string) ([]byte, error) {
	const most = 1 << 20
	var p []byte
	var err error
	switch {
	case arg == "-":
		p, err = io.ReadAll(io.LimitReader(a.stdin, most+1))
	case strings.HasPrefix(arg, "@"):
		if err := a.reader().OwnPaths(arg[1:]); err != nil {
			return nil, err
		}
		p, err = readAtMost(arg[1:])
	default:
		p = []byte(arg)
	}
	if err != nil {
		return nil, inputErr(err)
	}
	return p, nil
}
