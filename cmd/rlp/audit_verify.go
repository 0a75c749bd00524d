package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

type verifyFlags struct {
	run, since, checkpoint, proof, key string
}

func (a *app) auditVerifyCommand() *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use: "verify", Short: "Prove that the log is what was recorded, or name the first record that is not",
		Args: cobra.NoArgs,
		Long: `Checks every record against the log's tree, the tree against its signed checkpoints,
and what leads to records against the records. Who holds the log's key can write all of
that anew: a checkpoint that is kept outside of this host (--checkpoint, [audit] publish)
shows that, and a log that was cut, too. Files of [audit] publish are read by themselves.

It ends with 1 when something is not as it was recorded.`,
		Example: `  rlp audit verify
  rlp audit verify --checkpoint /mnt/worm/rlp.checkpoints
  rlp audit verify --since last.checkpoint
  rlp audit verify --proof record-17.tlog-proof --key audit.pub`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.reader().OwnPaths(f.since, f.checkpoint, f.proof, f.key); err != nil {
				return err
			}
			if f.proof != "" {
				return a.verifyProof(f)
			}
			if f.run != "" && f.since != "" {
				return usagef("--run and --since cannot be given together: a run is checked whole")
			}
			v, err := a.verify(c.Context(), f)
			if v == nil {
				return err
			}
			return errors.Join(ending(v.status(), a.printVerification(v)), err)
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.run, "run", "", "only the records of the run `ID`")
	fs.StringVar(&f.since, "since", "",
		"only what came after the newest checkpoint in `FILE`, and that the log goes on from there")
	fs.StringVar(&f.checkpoint, "checkpoint", "",
		"that the log goes on from every checkpoint in `FILE`, kept outside of this host")
	fs.StringVar(&f.proof, "proof", "", "check the proofs in `FILE` instead, with --key and without any log")
	fs.StringVar(&f.key, "key", "", "believe the public key `K`, a line or a file, instead of the one beside the log")
	return c
}

// verify checks the log of the tenant, and records what it finds.
func (a *app) verify(ctx context.Context, f verifyFlags) (v *verification, err error) {
	err = a.withLogToRead(ctx, func(ctx context.Context, l *openedLog) error {
		if v, err = verifyLog(ctx, l, f); err != nil {
			return err
		}
		if err := v.remember(ctx, l, f); err != nil {
			fmt.Fprintf(a.stderr, "rlp: %s\n", printable(err.Error()))
		}
		return nil
	})
	return v, err
}

// verifyLog checks the log.
func verifyLog(ctx context.Context, l *openedLog, f verifyFlags) (*verification, error) {
	v := &verification{Verification: ask.Verification{OK: true, Tenant: l.home.Tenant()}}
	check, err := v.prepare(ctx, l, f)
	if err != nil {
		return nil, err
	}
	if v.OK {
		report, err := l.VerifyLog(ctx, check)
		v.report(report)
		if err == nil {
			err = errors.Join(l.intake, v.unread)
		}
		if err = v.blame(err); err != nil {
			return nil, err
		}
	}
	if err := v.told(l, f.run == "" && f.since == ""); err != nil {
		return nil, err
	}
	if v.checked {
		if err := v.missing(ctx, l, f); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// prepare reads what the log is held against. What is wrong with that is a fault
// of v; an error is that it cannot be read.
func (v *verification) prepare(ctx context.Context, l *openedLog, f verifyFlags) (kb.LogCheck, error) {
	var check kb.LogCheck
	key, err := publicKey(l.home)
	if f.key != "" {
		var named *evidence.PublicKey
		if named, err = namedKey(f.key); err != nil {
			return check, err
		}
		key = named
	}
	if err != nil {
		v.fault(evidenceFault, 0, err.Error())
		return check, nil
	}
	if key != nil || !l.copied || compose.SignedBefore(l.home) {
		check.Open = opener(key)
	}
	if key != nil {
		v.Key, v.Origin = key.String(), key.Origin()
	}
	if f.run != "" {
		check.Run, err = l.runOf(ctx, f.run)
		switch {
		case errors.Is(err, kb.ErrDamaged):
			v.unread = err // the whole log is looked at instead, which finds out more
		case err != nil:
			return check, err
		}
		v.Run = check.Run
	}
	if f.since != "" {
		o, err := v.outside(f.since, key, f.key != "")
		if err != nil || !v.OK {
			return check, err
		}
		check.Since = o.heads[len(o.heads)-1]
	}
	if f.checkpoint != "" {
		o, err := v.outside(f.checkpoint, key, f.key != "")
		if err != nil || !v.OK {
			return check, err
		}
		check.Against = o.heads
	}
	if f.run == "" && f.since == "" && key != nil {
		heads, err := v.sinks(l, key, f.key != "")
		if err != nil || !v.OK {
			return check, err
		}
		check.Against = append(check.Against, heads...)
	}
	check.Against = slices.DeleteFunc(check.Against, func(h kb.Head) bool { return h.Size == 0 }) // every log begins so
	return check, nil
}

// opener believes notes by key alone.
func opener(key *evidence.PublicKey) func([]byte) (kb.Opened, error) {
	return func(note []byte) (kb.Opened, error) {
		if key == nil {
			return kb.Opened{}, errors.New("there is no key that it could be believed by: bring audit.key from where the log " +
				"was made, or name its public key with --key")
		}
		c, lines, err := key.OpenNote(note)
		return kb.Opened{Head: kb.Head{Size: c.Size, Root: c.Root}, Lines: lines}, err
	}
}
