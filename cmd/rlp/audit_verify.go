package main

import (
	"errors"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher/auditlog"
)

func (a *app) auditVerifyCommand() *cobra.Command {
	var f auditlog.Check
	var proof string
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
			if err := a.reader().OwnPaths(f.Since, f.Checkpoint, proof, f.Key); err != nil {
				return err
			}
			if proof != "" {
				return a.verifyProof(f, proof)
			}
			if f.Run != "" && f.Since != "" {
				return usagef("--run and --since cannot be given together: a run is checked whole")
			}
			v, err := auditlog.Verify(c.Context(), a.reader(), f)
			if v == nil {
				return err
			}
			return errors.Join(ending(found(v.OK), a.printVerification(v)), err)
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.Run, "run", "", "only the records of the run `ID`")
	fs.StringVar(&f.Since, "since", "",
		"only what came after the newest checkpoint in `FILE`, and that the log goes on from there")
	fs.StringVar(&f.Checkpoint, "checkpoint", "",
		"that the log goes on from every checkpoint in `FILE`, kept outside of this host")
	fs.StringVar(&proof, "proof", "", "check the proofs in `FILE` instead, with --key and without any log")
	fs.StringVar(&f.Key, "key", "", "believe the public key `K`, a line or a file, instead of the one beside the log")
	return c
}
