package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
)

type proofFlags struct{ run, since, out string }

func (a *app) auditProofCommand() *cobra.Command {
	var f proofFlags
	c := &cobra.Command{
		Use: "proof SEQ... | --run ID | --since FILE", Short: "Write what a stranger can check of the log, without the log",
		Long: `Writes a proof, as C2SP tlog-proof has it, for each record that is named by its seq or
its run: the record, where it is in the log's tree, and the signed checkpoint of that tree.
With --since, the proof that the log goes on from the newest checkpoint in a file.

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
			return a.withLog(c.Context(), func(ctx context.Context, l *openedLog) error { return a.prove(ctx, l, seqs, f) })
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

// A proofFile is one proof, and the name of its file in a folder.
type proofFile struct {
	name string
	text []byte
}

func (a *app) prove(ctx context.Context, l *openedLog, seqs []uint64, f proofFlags) error {
	if l.intake != nil {
		return l.intake
	}
	newest, err := l.Checkpoint(ctx)
	if err != nil {
		return err
	}
	if newest.Head.Size == 0 {
		return inputErr(errors.New("the log has no records"))
	}
	var proofs []proofFile
	if f.since != "" {
		proofs, err = l.proveSince(ctx, f.since, newest)
	} else {
		if f.run != "" {
			seqs, err = l.seqsOf(ctx, f.run)
		}
		if err == nil {
			proofs, err = l.proveRecords(ctx, seqs, newest)
		}
	}
	if err != nil {
		return err
	}
	return a.giveProofs(proofs, newest, f.out)
}

// maxProved bounds how many records are proved one by one: of more than these,
// the exported log itself is the smaller evidence.
const maxProved = 100_000

// seqsOf are the records of a run.
func (l *openedLog) seqsOf(ctx context.Context, run string) ([]uint64, error) {
	run, err := l.runOf(ctx, run)
	if err != nil {
		return nil, err
	}
	var list []uint64
	for g, err := range l.Glances(ctx, kb.Filter{Run: run}) {
		if err != nil {
			return nil, err
		}
		if list = append(list, g.Seq); len(list) > maxProved {
			return nil, inputErr(fmt.Errorf("run %s has more than %d records; rlp audit export --run writes them, and rlp "+
				"audit checkpoint what they are checked by", run, maxProved))
		}
	}
	return list, nil
}

func (l *openedLog) proveRecords(ctx context.Context, seqs []uint64, newest kb.Checkpoint) ([]proofFile, error) {
	var list []proofFile
	for _, seq := range seqs {
		if seq > newest.Head.Size {
			return nil, inputErr(fmt.Errorf("there is no record %d: the log has %d", seq, newest.Head.Size))
		}
		in, err := l.Inclusion(ctx, seq, newest.Head.Size)
		if err != nil {
			return nil, err
		}
		if in.Line == nil {
			return nil, inputErr(fmt.Errorf("record %d was pruned; who exported it before has its line, and rlp audit proof "+
				"of the time has its proof", seq))
		}
		p := evidence.Inclusion{Record: in.Line, Index: seq - 1, Hashes: in.Proof, Checkpoint: newest.Note}
		list = append(list, proofFile{fmt.Sprintf("%d.tlog-proof", seq), p.AppendText(nil)})
	}
	return list, nil
}

// proveSince proves that the log goes on from the newest checkpoint in a file.
func (l *openedLog) proveSince(ctx context.Context, name string, newest kb.Checkpoint) ([]proofFile, error) {
	key, err := publicKey(l.home)
	if err != nil {
		return nil, err
	}
	data, err := readOutside(name)
	if err != nil {
		return nil, err
	}
	p := evidence.Consistency{New: newest.Note}
	var old evidence.Checkpoint
	for _, n := range evidence.SplitNotes(data) {
		if c, err := key.Open(n.Text); err == nil && (p.Old == nil || c.Size >= old.Size) {
			p.Old, old = n.Text, c
		}
	}
	if p.Old == nil {
		return nil, inputErr(fmt.Errorf("%s has no checkpoint of this log", name))
	}
	if old.Size > 0 && old.Size <= newest.Head.Size {
		if _, _, p.Hashes, err = l.Consistency(ctx, old.Size, newest.Head.Size); err != nil {
			return nil, err
		}
		if old.Size == newest.Head.Size {
			p.Hashes = nil
		}
	}
	now := evidence.Checkpoint{Size: newest.Head.Size, Root: newest.Head.Root}
	if err := evidence.Extends(old, now, p.Hashes); err != nil {
		return nil, fmt.Errorf("%w; rlp audit verify --checkpoint %s names the first record", err, name)
	}
	return []proofFile{{fmt.Sprintf("%d-%d.proof", old.Size, newest.Head.Size), p.AppendText(nil)}}, nil
}

// giveProofs writes proofs to where they are wanted.
func (a *app) giveProofs(proofs []proofFile, newest kb.Checkpoint, out string) error {
	var all []byte
	for i, p := range proofs {
		if i > 0 {
			all = append(all, '\n')
		}
		all = append(all, p.text...)
	}
	info, err := os.Stat(out)
	switch {
	case out == "" && a.json:
		return a.printJSON(map[string]any{"proofs": len(proofs), "size": newest.Head.Size, "text": string(all)})
	case out == "":
		_, err = a.stdout.Write(all)
		return err
	case strings.HasSuffix(out, "/"), err == nil && info.IsDir():
		err = writeProofs(out, proofs)
	default:
		err = os.WriteFile(out, all, 0o600)
	}
	if err != nil {
		return inputErr(fmt.Errorf("writing proofs: %w", err))
	}
	if a.json {
		return a.printJSON(map[string]any{"proofs": len(proofs), "size": newest.Head.Size, "out": out})
	}
	if !a.quiet {
		fmt.Fprintf(a.stdout, "%s, in the log of %d records: %s\n", counted(len(proofs), "proof"), newest.Head.Size,
			printable(out))
	}
	return nil
}

func writeProofs(dir string, proofs []proofFile) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, p := range proofs {
		if err := os.WriteFile(filepath.Join(dir, p.name), p.text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
