package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/auditlog"
)

func auditCheckpointCommand(a *app) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "checkpoint", Short: "Print a signed checkpoint of the log as it is now, and publish it", Args: cobra.NoArgs,
		Long: `Prints a checkpoint (C2SP tlog-checkpoint) of all records: how many there are, the root
of their tree, and the log's signature. Kept outside of this host, it shows a log that was
cut or written anew: rlp audit verify --checkpoint FILE. The sinks of [audit] publish are
told of it, and of what they could not be told before.`,
		Example: `  rlp audit checkpoint | ssh archive 'cat >>rlp.checkpoints'
  rlp audit checkpoint --out /mnt/worm/rlp.checkpoints`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.reader().OwnPaths(out); err != nil {
				return err
			}
			return auditlog.Open(c.Context(), a.reader(), func(ctx context.Context, l *auditlog.Log) error {
				p, err := l.Publish(ctx, out)
				if err != nil {
					return err
				}
				return printCheckpoint(a, p)
			})
		},
	}
	c.Flags().StringVar(&out, "out", "", "append it to `FILE` instead, as [audit] publish does")
	return c
}

func printCheckpoint(a *app, p *auditlog.Published) error {
	var err error
	switch {
	case a.json:
		err = a.printJSON(p)
	case p.Out == "":
		_, err = fmt.Fprint(a.stdout, p.Note)
	case !a.quiet:
		fmt.Fprintf(a.stdout, "a checkpoint of %s: %s\n", counted(int(p.Size), "record"), printable(p.Out))
	}
	if err != nil || p.Untold == "" {
		return err
	}
	if a.json { // the one document has said it
		a.say(p.Untold)
		return exitWith(launcher.StatusUnavailable)
	}
	return &statusError{Status: launcher.StatusUnavailable, Err: errors.New(p.Untold)}
}

func auditKeyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "key", Short: "Print the public key that the log's checkpoints and proofs are believed by", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			key, file, err := auditlog.Key(c.Context(), a.reader())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]string{"origin": key.Origin(), "key": key.String(), "file": file})
			}
			_, err = fmt.Fprintln(a.stdout, key)
			return err
		},
	}
}
