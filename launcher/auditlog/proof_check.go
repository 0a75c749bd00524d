package auditlog

import (
	"encoding/json"
	"errors"
	"fmt"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// CheckProofs checks the proofs of a file by a public key, and by nothing else: no
// home is looked for and no log is opened. checkpoint is a file of checkpoints that
// the stranger has; "": none.
func CheckProofs(file, checkpoint string, key *evidence.PublicKey) (*ProofCheck, error) {
	data, err := readOutside(file)
	if err != nil {
		return nil, err
	}
	held, err := heldHeads(checkpoint, key)
	if err != nil {
		return nil, err
	}
	check := &ProofCheck{OK: true, Origin: key.Origin(), places: map[string]int{}}
	for i, text := range evidence.SplitProofs(data) {
		fact, err := evidence.Check(text, key)
		if err == nil {
			err = check.add(fact, held)
		}
		if err != nil && !errors.Is(err, evidence.ErrMismatch) && !errors.Is(err, evidence.ErrOther) {
			return nil, compose.InputErr(fmt.Errorf("%s: proof %d: %w; rlp audit proof writes such files", file, i+1, err))
		}
		if err != nil {
			check.OK, check.Message = false, fmt.Sprintf("proof %d: %v", i+1, err)
			break
		}
	}
	return check, nil
}

// A ProofCheck is what the proofs of a file say.
type ProofCheck struct {
	OK      bool              `json:"ok"`
	Message string            `json:"message,omitempty"`
	Kind    string            `json:"kind,omitempty"` // "inclusion" or "consistency"
	Origin  string            `json:"origin"`
	Size    uint64            `json:"size"` // of the tree that the proofs are of
	Root    string            `json:"root,omitempty"`
	From    uint64            `json:"from,omitempty"` // of a consistency: the size that it goes on from
	Runs    []ProvedRun       `json:"runs,omitempty"`
	Records []json.RawMessage `json:"records,omitempty"` // as they are in the log
	places  map[string]int    // of runs
}

// A ProvedRun is what the proofs of a file say of one run.
type ProvedRun struct {
	RunID   string `json:"run_id"`
	Records int    `json:"records"`
	Whole   bool   `json:"whole"` // all of it, from its start to its end
	next    uint64
	ended   bool
}

// heldHeads are the checkpoints of a file that the stranger has; nil: none.
func heldHeads(name string, key *evidence.PublicKey) ([]kb.Head, error) {
	if name == "" {
		return nil, nil
	}
	v := &verification{Verification: ask.Verification{OK: true}}
	o, err := v.outside(name, key, true)
	if err == nil && !v.OK {
		err = &compose.Error{Status: run.StatusFinding, Err: errors.New(v.Fault.Message)}
	}
	if err != nil {
		return nil, err
	}
	return o.heads, nil
}

// add counts what one proof says. held, if there are any, must have the
// checkpoint that it goes on from.
func (c *ProofCheck) add(fact *evidence.Fact, held []kb.Head) error {
	known := fact.New
	if fact.Kind == "consistency" {
		known = fact.Old
		c.From = fact.Old.Size
	}
	if c.Kind != "" && c.Kind != fact.Kind {
		return errors.New("the file has proofs of both kinds")
	}
	ok := held == nil
	for _, h := range held {
		ok = ok || h == kb.Head{Size: known.Size, Root: known.Root}
	}
	if !ok {
		return fmt.Errorf("the proof is %w: its checkpoint of %d records is none of those that are held",
			evidence.ErrMismatch, known.Size)
	}
	c.Kind = fact.Kind
	c.Size, c.Root = fact.New.Size, fact.New.Root.String()
	if r := fact.Record; r != nil {
		c.Records = append(c.Records, r.Line)
		c.follow(r)
	}
	return nil
}

// follow tells whether the records of a run follow each other from its start.
func (c *ProofCheck) follow(r *evidence.Record) {
	i, known := c.places[r.RunID]
	if !known {
		i = len(c.Runs)
		c.places[r.RunID] = i
		c.Runs = append(c.Runs, ProvedRun{RunID: r.RunID, next: 1})
	}
	run := &c.Runs[i]
	run.Records++
	if r.RunSeq == run.next && !run.ended {
		run.next++
		run.ended = audit.Ends(r.Kind)
	} else {
		run.next = 0 // never again
	}
	run.Whole = run.ended && run.next > 0
}
