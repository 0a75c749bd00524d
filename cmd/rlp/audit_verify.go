package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/auditlog"
)

func auditVerifyCommand(a *app) *cobra.Command {
	var f auditlog.Check
	var proof string
	c := &cobra.Command{
		Use: "verify", Short: "Verify the log: report the first record that was changed, removed or inserted",
		Args: cobra.NoArgs,
		Long: `Checks every record against the log's tree, the tree against its signed checkpoints,
and what leads to records against the records. Who holds the log's key can write all of
that anew: a checkpoint that is kept outside of this host (--checkpoint, [audit] publish)
shows that, and a log that was cut, too. Files of [audit] publish are read by themselves.

It ends with 1 when it finds tampering or damage.`,
		Example: `  rlp audit verify
  rlp audit verify --checkpoint /mnt/worm/rlp.checkpoints
  rlp audit verify --since last.checkpoint
  rlp audit verify --proof record-17.tlog-proof --key audit.pub`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.reader().OwnPaths(f.Since, f.Checkpoint, proof, f.Key); err != nil {
				return err
			}
			if proof != "" {
				return verifyProof(a, f, proof)
			}
			if f.Run != "" && f.Since != "" {
				return usagef("--run and --since cannot be given together: a run is checked whole")
			}
			v, err := auditlog.Verify(c.Context(), a.reader(), f)
			if v == nil {
				return err
			}
			return errors.Join(ending(found(v.OK), printVerification(a, v)), err)
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

func printVerification(a *app, v *ask.Verification) error {
	if a.json {
		return a.printJSON(v)
	}
	return atOnce(a.stdout, func(w io.Writer) { writeVerification(w, v, a.quiet) })
}

// atOnce writes a text whole, or says that it could not: what was found and
// printed to nobody is not what a script takes for an answer.
func atOnce(to io.Writer, write func(io.Writer)) error {
	var text bytes.Buffer
	write(&text)
	_, err := to.Write(text.Bytes())
	return err
}

func writeVerification(w io.Writer, v *ask.Verification, quiet bool) {
	checked := v.Root != "" // the log was looked at
	if v.Fault != nil {
		fmt.Fprintf(w, "not as recorded: %s\n", printable(v.Fault.String()))
	} else {
		fmt.Fprintf(w, "ok: %s\n", verificationSummary(v))
	}
	if quiet {
		return
	}
	if checked {
		fmt.Fprintf(w, "tree       %d leaves, root %s\n", v.Size, v.Root)
	}
	if v.Pruned > 0 {
		fmt.Fprintf(w, "pruned     records 1 to %d, at %s; their leaves are in the tree\n", v.Pruned,
			v.PrunedAt.Format(time.RFC3339))
	}
	if checked && v.Run == "" {
		fmt.Fprintf(w, "signed     %s, the newest of %d records\n", counted(v.Checkpoints, "checkpoint"), v.Sealed)
	}
	if v.Origin != "" {
		fmt.Fprintf(w, "log        %s\n", printable(v.Origin))
	}
	for _, m := range v.Missing {
		fmt.Fprintf(w, "missing    %s\n", printable(m))
	}
	if v.BareRuns > 0 {
		fmt.Fprintf(w, "bare       %s ended before the beginning was recorded: the process died, and nothing was decided\n",
			counted(v.BareRuns, "run"))
	}
	for _, o := range v.Outside {
		fmt.Fprintf(w, "outside    %s: %s, the newest of %d records%s\n", printable(o.File),
			counted(o.Checkpoints, "checkpoint"), o.Newest, o.Rest())
	}
	for _, t := range v.Published {
		of := ""
		if checked {
			of = fmt.Sprintf(" of %d", v.Size)
		}
		fmt.Fprintf(w, "published  %s: %d%s records\n", printable(t.Sink), t.Size, of)
	}
}

// verificationSummary says what was looked at.
func verificationSummary(v *ask.Verification) string {
	s := fmt.Sprintf("%s of %s", counted(v.Records, "record"), counted(v.Runs, "run"))
	if v.Run != "" {
		s = fmt.Sprintf("%s of run %s", counted(v.Records, "record"), v.Run)
	}
	if v.Records == 0 && v.Size == 0 {
		return "the log of tenant " + v.Tenant + " has no records"
	}
	s += ", as they were recorded"
	if v.Run == "" && v.From > 1 {
		s += fmt.Sprintf(", from number %d on", v.From)
	}
	if v.OpenRuns > 0 {
		s += fmt.Sprintf("; %s not ended", counted(v.OpenRuns, "run"))
	}
	return s
}
