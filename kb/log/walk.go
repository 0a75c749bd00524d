package log

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/mod/sumdb/tlog"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

const (
	maxWalks = 4
	keepWalk = time.Minute // that nobody asks to go on
)

// walks are the verifications of the log that are under way. Each sees the log
// of one moment and goes on where its last step ended.
type walks struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]*walk
	step time.Duration // that one request takes; 0: db.VerifyStep
}

// A walkAsk is what a verification is asked for.
type walkAsk struct {
	Run     string   `cbor:"1,keyasint,omitempty"`
	Since   Head     `cbor:"2,keyasint"`
	Against []uint64 `cbor:"3,keyasint,omitempty"` // sizes whose roots are wanted
}

// A walkStep is what one step of a verification has found.
type walkStep struct {
	Gone     bool        `cbor:"1,keyasint,omitempty"` // the verification is not known here: begin again
	Report   Report      `cbor:"2,keyasint"`
	Roots    []Head      `cbor:"3,keyasint,omitempty"` // that were wanted
	Signed   []walkPoint `cbor:"4,keyasint,omitempty"` // checkpoints that were passed
	Mark     *Mark       `cbor:"5,keyasint,omitempty"` // the last one
	End      uint64      `cbor:"6,keyasint,omitempty"` // the first record behind the last of these that ends a run
	Fault    *Error      `cbor:"7,keyasint,omitempty"`
	Finished bool        `cbor:"8,keyasint,omitempty"`
}

// A walkPoint is a stored checkpoint and the root that the records make there.
type walkPoint struct {
	Checkpoint Checkpoint `cbor:"1,keyasint"`
	Root       [32]byte   `cbor:"2,keyasint"`
}

// A walk is one verification.
type walk struct {
	*Log
	txn  *badger.Txn
	ask  walkAsk
	page uint64
	used time.Time

	stage  func(ctx context.Context, until time.Time) (done bool, err error)
	head   Head
	mark   *Mark
	report Report
	step   *walkStep
	wanted []uint64 // sizes, ascending, that are still to come
	tree   *tree    // of what was looked at
	leaves []byte   // the tile of the next leaf, as it is stored

	leavesAt uint64 // its number, where they are not looked at in order

	leafer    *leafer
	glance    audit.Glance
	isFinding bool // what glance is of
	runs      map[string]*runWalk
	current   *runWalk
	index     indexWalk

	points   []Checkpoint // the next ones
	pointsAt uint64       // the size of the last one that was read
}

// A runWalk is how far the records of a run were seen.
type runWalk struct {
	run    string
	runSeq uint64
	ended  bool
	known  bool // how far its journal was taken in
}

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
	w, id, err := l.takeWalk(q)
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
		w.txn.Discard()
	} else {
		l.walks.put(id, w)
	}
	return &verifyLogAnswer{id, *w.step}, err
}

// takeWalk finds a verification, or begins one. Nobody else has it then.
func (l *Log) takeWalk(q *verifyLogRequest) (*walk, uint64, error) {
	l.walks.mu.Lock()
	defer l.walks.mu.Unlock()
	now := time.Now()
	for id, w := range l.walks.open {
		if now.Sub(w.used) > keepWalk {
			l.walks.end(id)
		}
	}
	if q.Walk != 0 {
		w := l.walks.open[q.Walk]
		if w == nil || w.page != q.Step {
			return nil, 0, nil
		}
		delete(l.walks.open, q.Walk)
		return w, q.Walk, nil
	}
	if len(l.walks.open) >= maxWalks {
		return nil, 0, fmt.Errorf("%w: %d verifications of the log are under way", wire.ErrUnavailable, len(l.walks.open))
	}
	l.walks.last++
	leafer, err := newLeafer()
	if err != nil {
		return nil, 0, err
	}
	w := &walk{Log: l, ask: q.Ask, txn: l.db.NewTransaction(false), leafer: leafer, runs: map[string]*runWalk{}}
	w.stage = w.begin
	return w, l.walks.last, nil
}

// put keeps a verification for its next step.
func (s *walks) put(id uint64, w *walk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.used = time.Now()
	w.page++
	if s.open == nil {
		s.open = map[uint64]*walk{}
	}
	s.open[id] = w
}

// end gives a verification up; the caller holds s.mu.
func (s *walks) end(id uint64) {
	s.open[id].txn.Discard()
	delete(s.open, id)
}

func (s *walks) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.open {
		s.end(id)
	}
}

// advance goes from stage to stage until time is up or there is none.
func (w *walk) advance(ctx context.Context) error {
	until := time.Now().Add(cmp.Or(w.walks.step, db.VerifyStep))
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

// shortFault: the log had known records and has fewer.
func shortFault(size, known uint64) error {
	return &Error{
		FaultTruncated, size + 1, known,
		fmt.Sprintf("the log had %d records, and has %d: it was cut, or it is an older copy of itself", known, size),
	}
}

// treeFault is an error of reading the tree, as a fault.
func treeFault(seq, upTo uint64, err error) error {
	if !isDamage(err) {
		return err
	}
	return &Error{FaultTree, seq, upTo, plain(err)}
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
