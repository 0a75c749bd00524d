package main

import (
	"fmt"
	"io"

	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/auditlog"
)

// verifyProof checks the proofs of a file without any log.
func verifyProof(a *app, f auditlog.Check, proof string) error {
	switch {
	case f.Key == "":
		return usagef("--proof is believed by a public key alone: give the one that you hold with --key (rlp audit key " +
			"prints it)")
	case f.Run != "" || f.Since != "":
		return usagef("--proof is checked without a log, so --run and --since make no sense with it")
	}
	key, err := auditlog.NamedKey(f.Key)
	if err != nil {
		return err
	}
	check, err := auditlog.CheckProofs(proof, f.Checkpoint, key)
	if err != nil {
		return err
	}
	return ending(found(check.OK), printProofCheck(a, check))
}

// found is the exit status of a check.
func found(ok bool) int {
	if ok {
		return launcher.StatusOK
	}
	return launcher.StatusFinding
}

func printProofCheck(a *app, c *auditlog.ProofCheck) error {
	if a.json {
		return a.printJSON(c)
	}
	return atOnce(a.stdout, func(w io.Writer) { writeProofCheck(w, c, a.quiet) })
}

func writeProofCheck(w io.Writer, c *auditlog.ProofCheck, quiet bool) {
	switch {
	case !c.OK:
		fmt.Fprintf(w, "not proved: %s\n", printable(c.Message))
		return
	case c.Kind == "consistency":
		fmt.Fprintf(w, "ok: the log of %d records goes on from that of %d\n", c.Size, c.From)
	default:
		fmt.Fprintf(w, "ok: %s in the log of %d\n", counted(len(c.Records), "record"), c.Size)
	}
	if quiet {
		return
	}
	fmt.Fprintf(w, "log        %s\ntree       %d leaves, root %s\n", printable(c.Origin), c.Size, c.Root)
	for _, r := range c.Runs {
		whole := "not the whole run"
		if r.Whole {
			whole = "the whole run, from its start to its end"
		}
		fmt.Fprintf(w, "run        %s: %s, %s\n", printable(r.RunID), counted(r.Records, "record"), whole)
	}
	for _, line := range c.Records {
		fmt.Fprintln(w, printable(string(line)))
	}
}
