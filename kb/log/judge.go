package log

import (
	"fmt"
)

// A judge compares what a verification finds with what its caller knows: the
// keys that checkpoints are signed with, and heads from elsewhere.
type judge struct {
	check  *Check
	report Report
	good   uint64 // the log is known to be right up to here
	known  uint64 // the same by heads from elsewhere alone: who has the key signs checkpoints anew
	end    uint64 // the first end of a run that no checkpoint covers so far
	mark   *Mark  // whose root was not yet compared
}

func newJudge(c *Check) *judge { return &judge{check: c, good: c.Since.Size, known: c.Since.Size} }

// ask is what the owner of the store is asked for.
func (j *judge) ask() walkAsk {
	a := walkAsk{Run: j.check.Run, Since: j.check.Since}
	if a.Since.Size == 0 {
		a.Since = Head{}
	}
	for _, h := range j.check.Against {
		a.Against = append(a.Against, h.Size)
	}
	return a
}

// judge judges a step. What it finds comes before the step's own fault, for it is
// about records before that.
func (j *judge) judge(s *walkStep) error {
	done := j.report
	j.report = s.Report
	j.report.Checkpoints, j.report.Sealed = done.Checkpoints, done.Sealed
	if s.Mark != nil {
		if err := j.marked(s.Mark); err != nil {
			return err
		}
	}
	// Both are by size.
	roots, signed := s.Roots, s.Signed
	for len(roots)+len(signed) > 0 {
		var err error
		if len(signed) == 0 || len(roots) > 0 && roots[0].Size < signed[0].Checkpoint.Head.Size {
			err = j.root(roots[0])
			roots = roots[1:]
		} else {
			err = j.signed(&signed[0])
			signed = signed[1:]
		}
		if err != nil {
			return err
		}
	}
	if j.end == 0 && s.End > j.report.Sealed {
		j.end = s.End
	}
	switch {
	case s.Fault != nil:
		return s.Fault
	case s.Finished && j.check.Open != nil && j.end != 0:
		return &Error{
			FaultUnsealed, j.end, 0,
			"it ends a run, and there is no checkpoint from then on: those that were there are gone, or none could be made",
		}
	}
	return nil
}

// root compares a root with the heads that the caller knows.
func (j *judge) root(h Head) error {
	for _, known := range j.check.Against {
		if known.Size != h.Size {
			continue
		}
		if known.Root != h.Root {
			j.good = j.known
			return j.rewritten(h.Size, "the head that it is compared with")
		}
		j.known = max(j.known, h.Size)
	}
	if j.mark != nil && j.mark.Head.Size == h.Size {
		if j.mark.Head.Root != h.Root {
			return j.rewritten(h.Size, "the mark of what was pruned")
		}
		j.mark = nil
	}
	j.good = max(j.good, h.Size)
	return nil
}

// rewritten: up to size records and tree agree, and are not what is known.
func (j *judge) rewritten(size uint64, than string) error {
	return &Error{
		FaultRewritten, min(j.good+1, size), size,
		fmt.Sprintf("what they make together is not what %s says of the first %d", than, size),
	}
}

// signed compares a checkpoint with its note, and what it says with the records.
func (j *judge) signed(p *walkPoint) error {
	c := &p.Checkpoint
	if j.check.Open != nil {
		o, err := j.check.Open(c.Note)
		if err == nil && (o.Head != c.Head || len(o.Lines) > 0) {
			err = fmt.Errorf("its note is about another head")
		}
		if err != nil {
			return &Error{Fault: FaultCheckpoint, Why: fmt.Sprintf("the checkpoint of %d records: %v", c.Head.Size, err)}
		}
	}
	if c.Head.Root != p.Root {
		return j.rewritten(c.Head.Size, "their checkpoint")
	}
	j.good = max(j.good, c.Head.Size)
	j.report.Checkpoints++
	j.report.Sealed = c.Head.Size
	if j.end <= c.Head.Size {
		j.end = 0
	}
	return nil
}

// marked opens the mark of what was pruned.
func (j *judge) marked(m *Mark) error {
	j.mark = m
	if j.check.Open == nil {
		return nil
	}
	o, err := j.check.Open(m.Note)
	if err == nil && (o.Head != m.Head || !sameLines(o.Lines, m.lines())) {
		err = fmt.Errorf("its note says something else")
	}
	if err != nil {
		return &Error{FaultRemoved, 1, m.Pruned, fmt.Sprintf("the mark that says that they were pruned: %v", err)}
	}
	return nil
}
