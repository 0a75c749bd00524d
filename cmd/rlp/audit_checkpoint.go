package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

func (a *app) auditCheckpointCommand() *cobra.Command {
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
			return a.withLog(c.Context(), func(ctx context.Context, l *openedLog) error { return a.checkpoint(ctx, l, out) })
		},
	}
	c.Flags().StringVar(&out, "out", "", "append it to `FILE` instead, as [audit] publish does")
	return c
}

// A checkpointMade is what rlp audit checkpoint prints.
type checkpointMade struct {
	Origin    string          `json:"origin"`
	Size      uint64          `json:"size"`
	Root      string          `json:"root"`
	Note      string          `json:"note"`
	Out       string          `json:"out,omitempty"`
	Published []evidence.Told `json:"published,omitempty"`
	Untold    string          `json:"untold,omitempty"` // which sinks were not told, and why
}

func (a *app) checkpoint(ctx context.Context, l *openedLog, out string) error {
	if l.intake != nil {
		return l.intake
	}
	made, err := l.Checkpoint(ctx)
	if err != nil {
		return err
	}
	key, err := publicKey(l.home)
	if err != nil {
		return err
	}
	told, err := compose.Publish(ctx, l.home, l.config, l.Store)
	if err != nil {
		return err
	}
	var untold error
	for _, t := range told {
		untold = errors.Join(untold, t.Err)
	}
	m := checkpointMade{
		Origin: key.Origin(), Size: made.Head.Size, Root: base64.StdEncoding.EncodeToString(made.Head.Root[:]),
		Note: string(made.Note), Out: out, Published: told,
	}
	if untold != nil {
		m.Untold = untold.Error()
	}
	if err := a.giveCheckpoint(m, made); err != nil || untold == nil {
		return err
	}
	if a.json { // the one document has said it
		fmt.Fprintf(a.stderr, "rlp: %s\n", printableLines(m.Untold))
		return exitWith(launcher.StatusUnavailable)
	}
	return &statusError{Status: launcher.StatusUnavailable, Err: untold}
}

func (a *app) giveCheckpoint(m checkpointMade, made kb.Checkpoint) error {
	if m.Out != "" {
		path, err := filepath.Abs(m.Out)
		if err != nil {
			return inputErr(err)
		}
		if err := evidence.AppendNotes(path, [][]byte{made.Note}); err != nil {
			return inputErr(fmt.Errorf("writing the checkpoint: %w", err))
		}
	}
	if a.json {
		return a.printJSON(m)
	}
	if m.Out == "" {
		_, err := fmt.Fprint(a.stdout, m.Note)
		return err
	}
	if !a.quiet {
		fmt.Fprintf(a.stdout, "a checkpoint of %s: %s\n", counted(int(m.Size), "record"), printable(m.Out))
	}
	return nil
}

func (a *app) auditKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "key", Short: "Print the public key that the log's checkpoints and proofs are believed by", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := a.home()
			if err == nil && !compose.SignedBefore(h) { // a key beside no log says that the log was removed
				err = a.withLog(c.Context(), func(context.Context, *openedLog) error { return nil })
			}
			if err != nil {
				return err
			}
			key, err := evidence.MakeKey(h.Root(), h.Tenant())
			if err == nil {
				err = key.CheckPublic(h.Root())
			}
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]string{
					"origin": key.Public().Origin(), "key": key.Public().String(), "file": filepath.Join(h.Root(),
						evidence.PublicFile),
				})
			}
			_, err = fmt.Fprintln(a.stdout, key.Public())
			return err
		},
	}
}
