package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher/auditlog"
)

type proofFlags struct{ run, since, out string }

func auditProofCommand(a *app) *cobra.Command {
	var f proofFlags
	c := &cobra.Command{
		Use: "proof N... | --run ID | --since FILE", Short: "Write what a stranger can check of the log, without the log",
		Long: `Writes a proof, as C2SP tlog-proof has it, for each record that is named by its number
in rlp audit list, or by its run: the record, where it is in the log's tree, and the
signed checkpoint of that tree. With --since, the proof that the log goes on from the
newest checkpoint in a file.

Whoever has the file and the public key (rlp audit key) checks it with
rlp audit verify --proof FILE --key K, or any tool that knows RFC 6962.`,
		Example: `  rlp audit proof 17 --out record-17.tlog-proof
  rlp audit proof --run 0198d2c4-7f1e --out proofs/
  rlp audit proof --since last.checkpoint --out since.proof`,
		RunE: func(c *cobra.Command, args []string) error {
			seqs, err := f.seqs(args)
			if err == nil {
				err = a.reader().OwnPaths(f.since, f.out)
			}
			if err != nil {
				return err
			}
			return auditlog.Open(c.Context(), a.reader(), func(ctx context.Context, l *auditlog.Log) error {
				proofs, size, err := l.Prove(ctx, seqs, f.run, f.since)
				if err != nil {
					return err
				}
				return giveProofs(a, proofs, size, f.out)
			})
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.run, "run", "", "each record of the run `ID`")
	fs.StringVar(&f.since, "since", "", "that the log goes on from the newest checkpoint in `FILE`")
	fs.StringVar(&f.out, "out", "", "write to `FILE`, or a file each into the folder FILE/, instead of stdout")
	return c
}

// seqs are the records that are named one by one.
func (f *proofFlags) seqs(args []string) ([]uint64, error) {
	ways := 0
	for _, given := range []bool{len(args) > 0, f.run != "", f.since != ""} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return nil, usagef("rlp audit proof takes the seq of records, or --run ID, or --since FILE, one of the three")
	}
	var list []uint64
	for _, arg := range args {
		n, err := strconv.ParseUint(arg, 10, 62)
		if err != nil || n == 0 {
			return nil, usagef("%s is no seq: a whole number from 1 on, as rlp audit list shows it first in its line", arg)
		}
		list = append(list, n)
	}
	return list, nil
}

// giveProofs writes proofs to where they are wanted.
func giveProofs(a *app, proofs []auditlog.Proof, size uint64, out string) error {
	var all []byte
	for i, p := range proofs {
		if i > 0 {
			all = append(all, '\n')
		}
		all = append(all, p.Text...)
	}
	info, err := os.Stat(out)
	switch {
	case out == "" && a.json:
		return a.printJSON(map[string]any{"proofs": len(proofs), "size": size, "text": string(all)})
	case out == "":
		_, err = a.stdout.Write(all)
		return err
	case strings.HasSuffix(out, "/"), err == nil && info.IsDir():
		err = auditlog.WriteProofs(out, proofs)
	default:
		err = os.WriteFile(out, all, 0o600)
	}
	if err != nil {
		return inputErr(fmt.Errorf("writing proofs: %w", err))
	}
	return answer(a, map[string]any{"proofs": len(proofs), "size": size, "out": out},
		"%s, in the log of %d records: %s", counted(len(proofs), "proof"), size, printable(out))
}
