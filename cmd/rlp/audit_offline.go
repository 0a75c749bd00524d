package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
)

// A proofCheck is what rlp audit verify --proof prints.
type proofCheck struct {
	OK      bool              `json:"ok"`
	Message string            `json:"message,omitempty"`
	Kind    string            `json:"kind,omitempty"` // "inclusion" or "consistency"
	Origin  string            `json:"origin"`
	Size    uint64            `json:"size"` // of the tree that the proofs are of
	Root    string            `json:"root,omitempty"`
	From    uint64            `json:"from,omitempty"` // of a consistency: the size that it goes on from
	Runs    []provedRun       `json:"runs,omitempty"`
	Records []json.RawMessage `json:"records,omitempty"` // as they are in the log
	places  map[string]int    // of runs
}

// A provedRun is what the proofs of a file say of one run.
type provedRun struct {
	RunID   string `json:"run_id"`
	Records int    `json:"records"`
	Whole   bool   `json:"whole"` // all of it, from its start to its end
	next    uint64
	ended   bool
}

// verifyProof checks the proofs of a file by a public key, and by nothing else:
// no home is looked for and no log is opened.
func (a *app) verifyProof(f verifyFlags) error {
	switch {
	case f.key == "":
		return usagef("--proof is believed by a public key alone: give the one that you hold with --key (rlp audit key " +
			"prints it)")
	case f.run != "" || f.since != "":
		return usagef("--proof is checked without a log, so --run and --since make no sense with it")
	}
	key, err := namedKey(f.key)
	if err != nil {
		return err
	}
	data, err := readOutside(f.proof)
	if err != nil {
		return err
	}
	held, err := heldHeads(f.checkpoint, key)
	if err != nil {
		return err
	}
	check := &proofCheck{OK: true, Origin: key.Origin(), places: map[string]int{}}
	for i, text := range evidence.SplitProofs(data) {
		fact, err := evidence.Check(text, key)
		if err == nil {
			err = check.add(fact, held)
		}
		if err != nil && !errors.Is(err, evidence.ErrMismatch) && !errors.Is(err, evidence.ErrOther) {
			return inputErr(fmt.Errorf("%s: proof %d: %w; rlp audit proof writes such files", f.proof, i+1, err))
		}
		if err != nil {
			check.OK, check.Message = false, fmt.Sprintf("proof %d: %v", i+1, err)
			return ending(launcher.StatusFinding, a.printProofCheck(check))
		}
	}
	return a.printProofCheck(check)
}

// heldHeads are the checkpoints of a file that the stranger has; nil: none.
func heldHeads(name string, key *evidence.PublicKey) ([]kb.Head, error) {
	if name == "" {
		return nil, nil
	}
	v := &verification{Verification: ask.Verification{OK: true}}
	o, err := v.outside(name, key, true)
	if err == nil && !v.OK {
		err = &statusError{Status: launcher.StatusFinding, Err: errors.New(v.Fault.Message)}
	}
	if err != nil {
		return nil, err
	}
	return o.heads, nil
}

// add counts what one proof says. held, if there are any, must have the
// checkpoint that it goes on from.
func (c *proofCheck) add(fact *evidence.Fact, held []kb.Head) error {
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
func (c *proofCheck) follow(r *evidence.Record) {
	i, known := c.places[r.RunID]
	if !known {
		i = len(c.Runs)
		c.places[r.RunID] = i
		c.Runs = append(c.Runs, provedRun{RunID: r.RunID, next: 1})
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

func (a *app) printProofCheck(c *proofCheck) error {
	if a.json {
		return a.printJSON(c)
	}
	return atOnce(a.stdout, func(w io.Writer) { c.print(w, a.quiet) })
}

func (c *proofCheck) print(w io.Writer, quiet bool) {
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
