package log

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// A verifyLogRequest asks for a step of a verification of the log.
type verifyLogRequest struct {
	Walk uint64  `cbor:"1,keyasint,omitempty"` // which verification; 0: a new one
	Step uint64  `cbor:"2,keyasint,omitempty"`
	Ask  walkAsk `cbor:"3,keyasint"` // of a new one
}

type verifyLogAnswer struct {
	Walk uint64   `cbor:"1,keyasint,omitempty"`
	Step walkStep `cbor:"2,keyasint"`
}

func (*verifyLogRequest) Op() wire.Opcode { return wire.OpVerifyLog }

func (q *verifyLogRequest) Do(ctx context.Context, l *Log) (*verifyLogAnswer, error) {
	w, err := l.takeWalk(q)
	if err != nil || w == nil {
		return &verifyLogAnswer{Step: walkStep{Gone: true}}, err
	}
	w.step = &walkStep{}
	err = w.advance(ctx)
	w.step.Report = w.report
	if fault, is := asError(err); is {
		w.step.Fault, w.step.Finished, err = fault, true, nil
	}
	if err != nil || w.step.Finished {
		w.Discard()
	} else {
		l.walks.Put(q.Walk, q.Step, w)
	}
	return &verifyLogAnswer{q.Walk, *w.step}, err
}

// takeWalk finds a verification, or begins one; nil: it is not there. Nobody else has
// it then.
func (l *Log) takeWalk(q *verifyLogRequest) (*walk, error) {
	if q.Walk != 0 {
		v, _ := l.walks.Take(q.Walk, q.Step)
		w, _ := v.(*walk)
		return w, nil
	}
	leafer, err := newLeafer()
	if err == nil {
		q.Walk, err = l.walks.Begin("verifications of the log")
	}
	if err != nil {
		return nil, err
	}
	w := &walk{Log: l, ask: q.Ask, txn: l.db.NewTransaction(false), leafer: leafer, runs: map[string]*runWalk{}}
	w.stage = w.begin
	return w, nil
}

// advance goes from stage to stage until time is up or there is none.
func (w *walk) advance(ctx context.Context) error {
	until := time.Now().Add(cmp.Or(w.verifyStep, db.VerifyStep))
	for w.stage != nil {
		done, err := w.stage(ctx, until)
		if err != nil || !done {
			return err
		}
	}
	w.step.Finished = true
	return nil
}

// begin looks at what the log says of itself.
func (w *walk) begin(context.Context, time.Time) (bool, error) {
	var err error
	if w.head, err = storedHead(w.txn); err != nil {
		return false, treeFault(0, 0, err)
	}
	w.report.Head = w.head
	seq, err := db.GetNumber(w.txn, keySeq())
	if err != nil {
		return false, treeFault(0, 0, err)
	}
	if seq != w.head.Size {
		return false, &Error{
			FaultTree, min(seq, w.head.Size) + 1, max(seq, w.head.Size),
			fmt.Sprintf("the log counts %d records, and its tree has %d leaves", seq, w.head.Size),
		}
	}
	if err := w.readMark(); err != nil {
		return false, err
	}
	if w.ask.Since.Size > w.head.Size {
		return false, shortFault(w.head.Size, w.ask.Since.Size)
	}
	if err := w.want(); err != nil {
		return false, err
	}
	if w.ask.Run != "" {
		w.stage = w.oneRun
		return true, nil
	}
	if w.tree, err = loadTree(w.txn, w.ask.Since.Size); err != nil {
		return false, treeFault(1, w.ask.Since.Size, err)
	}
	if since := w.ask.Since; since.Size > 0 && w.tree.root() != tlog.Hash(since.Root) {
		return false, &Error{
			FaultRewritten, 1, since.Size,
			fmt.Sprintf("the log did not have this root when it had %d records", since.Size),
		}
	}
	w.pointsAt = w.ask.Since.Size
	w.report.From = max(w.ask.Since.Size, w.report.Pruned) + 1
	w.stage = w.records
	return true, nil
}

// want sorts the sizes whose roots are asked for. Those of before are read from
// the tree.
func (w *walk) want() error {
	w.wanted = append(w.wanted, w.ask.Against...)
	if w.mark != nil {
		w.wanted = append(w.wanted, w.mark.Head.Size)
	}
	slices.Sort(w.wanted)
	w.wanted = slices.Compact(w.wanted)
	if n := len(w.wanted); n > 0 && w.wanted[n-1] > w.head.Size {
		return shortFault(w.head.Size, w.wanted[n-1])
	}
	for len(w.wanted) > 0 && (w.wanted[0] <= w.ask.Since.Size || w.ask.Run != "") {
		root, err := rootAt(w.txn, w.wanted[0])
		if err != nil {
			return treeFault(1, w.wanted[0], err)
		}
		w.step.Roots = append(w.step.Roots, Head{w.wanted[0], root})
		w.wanted = w.wanted[1:]
	}
	return nil
}

// readMark finds what was pruned.
func (w *walk) readMark() (err error) {
	if w.mark, err = w.lastMark(w.txn); err != nil {
		return &Error{Fault: FaultCheckpoint, Why: plain(err)}
	}
	at, err := db.GetNumber(w.txn, keyPruned())
	if err != nil {
		return &Error{Fault: FaultCheckpoint, Why: plain(err)}
	}
	marked := uint64(0)
	if w.mark != nil {
		marked = w.mark.Pruned
		w.report.PrunedMS = w.mark.UnixMS
		w.step.Mark = w.mark
	}
	if at != marked || marked > w.head.Size {
		return &Error{
			FaultRemoved, min(marked, at) + 1, max(marked, at),
			fmt.Sprintf("the log says that it was pruned up to record %d, and its mark up to %d", at, marked),
		}
	}
	under, err := db.Get(w.txn, keyPruning())
	w.report.Pruned, w.report.Unfinished = marked, under != nil
	return err
}
