package auditlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/compose"
)

// Prove makes a proof each of the records that are named by seq or by their run, or
// the one that the log goes on from the newest checkpoint in the file since. They are
// of a log of so many records.
func (l *Log) Prove(ctx context.Context, seqs []uint64, run, since string) (proofs []Proof, size uint64, err error) {
	if l.intake != nil {
		return nil, 0, l.intake
	}
	newest, err := l.Checkpoint(ctx)
	switch {
	case err != nil:
		return nil, 0, err
	case newest.Head.Size == 0:
		return nil, 0, compose.InputErr(errors.New("the log has no records"))
	case since != "":
		proofs, err = l.proveSince(ctx, since, newest)
		return proofs, newest.Head.Size, err
	case run != "":
		if seqs, err = l.seqsOf(ctx, run); err != nil {
			return nil, 0, err
		}
	}
	proofs, err = l.proveRecords(ctx, seqs, newest)
	return proofs, newest.Head.Size, err
}

// A Proof is one proof, and the name of its file in a folder.
type Proof struct {
	Name string
	Text []byte
}

// maxProved bounds how many records are proved one by one: of more than these,
// the exported log itself is the smaller evidence.
const maxProved = 100_000

// seqsOf are the records of a run.
func (l *Log) seqsOf(ctx context.Context, run string) ([]uint64, error) {
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
			return nil, compose.InputErr(fmt.Errorf("run %s has more than %d records; rlp audit export --run writes them, and rlp "+
				"audit checkpoint what they are checked by", run, maxProved))
		}
	}
	return list, nil
}

func (l *Log) proveRecords(ctx context.Context, seqs []uint64, newest kb.Checkpoint) ([]Proof, error) {
	var list []Proof
	for _, seq := range seqs {
		if seq > newest.Head.Size {
			return nil, compose.InputErr(fmt.Errorf("there is no record %d: the log has %d", seq, newest.Head.Size))
		}
		in, err := l.Inclusion(ctx, seq, newest.Head.Size)
		if err != nil {
			return nil, err
		}
		if in.Line == nil {
			return nil, compose.InputErr(fmt.Errorf("record %d was pruned; who exported it before has its line, and rlp audit proof "+
				"of the time has its proof", seq))
		}
		p := evidence.Inclusion{Record: in.Line, Index: seq - 1, Hashes: in.Proof, Checkpoint: newest.Note}
		list = append(list, Proof{fmt.Sprintf("%d.tlog-proof", seq), p.AppendText(nil)})
	}
	return list, nil
}

// proveSince proves that the log goes on from the newest checkpoint in a file.
func (l *Log) proveSince(ctx context.Context, name string, newest kb.Checkpoint) ([]Proof, error) {
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
		return nil, compose.InputErr(fmt.Errorf("%s has no checkpoint of this log", name))
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
	return []Proof{{fmt.Sprintf("%d-%d.proof", old.Size, newest.Head.Size), p.AppendText(nil)}}, nil
}

// WriteProofs writes a file each into a folder.
func WriteProofs(dir string, proofs []Proof) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, p := range proofs {
		if err := os.WriteFile(filepath.Join(dir, p.Name), p.Text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
