package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
)

// evidenceFault is the kind of what is wrong with a key, or with what is held
// against the log.
const evidenceFault kb.Fault = "evidence"

// A verification is one under way.
type verification struct {
	ask.Verification
	found   int      // how many findings there are
	unlike  []string // the runs among Missing that log/ tells of
	checked bool     // the log was looked at
	unread  error    // why the run that is asked for could not be looked up
}

// fault is one that says more than a log says of itself.
func (v *verification) fault(kind kb.Fault, seq uint64, message string) {
	v.OK, v.Fault = false, &ask.Fault{Kind: kind, Seq: seq, Message: message, OfHost: true}
}

// blame makes a fault of what is wrong with the log; other errors it returns.
func (v *verification) blame(err error) error {
	var le *kb.LogError
	switch {
	case err == nil:
	case errors.As(err, &le):
		v.OK, v.Fault = false, &ask.Fault{Kind: le.Fault, Seq: le.Seq, UpTo: le.UpTo, Message: le.Why}
	case errors.Is(err, kb.ErrDamaged):
		v.fault(kb.FaultTree, 0, err.Error())
	case errors.Is(err, kb.ErrUnavailable):
		return &statusError{Status: launcher.StatusUnavailable, Err: err}
	default:
		return err
	}
	return nil
}

// report takes over what was looked at.
func (v *verification) report(r kb.LogReport) {
	v.checked = true
	v.Records, v.Runs, v.OpenRuns, v.From = r.Records, r.Runs, r.Open, r.From
	v.Size, v.Root = r.Head.Size, base64.StdEncoding.EncodeToString(r.Head.Root[:])
	v.Pruned, v.Checkpoints, v.Sealed = r.Pruned, r.Checkpoints, r.Sealed
	v.BareRuns, v.Findings, v.found = r.Bare, r.Findings, r.Found
	if r.Pruned > 0 {
		at := time.UnixMilli(r.PrunedMS).UTC()
		v.PrunedAt = &at
	}
}

func (v *verification) status() int {
	if v.OK {
		return launcher.StatusOK
	}
	return launcher.StatusFinding
}

func (a *app) printVerification(v *verification) error {
	if a.json {
		return a.printJSON(&v.Verification)
	}
	return atOnce(a.stdout, func(w io.Writer) { v.print(w, a.quiet) })
}

// atOnce writes a text whole, or says that it could not: what was found and
// printed to nobody is not what a script takes for an answer.
func atOnce(to io.Writer, write func(io.Writer)) error {
	var text bytes.Buffer
	write(&text)
	_, err := to.Write(text.Bytes())
	return err
}

func (v *verification) print(w io.Writer, quiet bool) {
	if v.Fault != nil {
		fmt.Fprintf(w, "not as recorded: %s\n", printable(v.Fault.String()))
	} else {
		fmt.Fprintf(w, "ok: %s\n", v.summary())
	}
	if quiet {
		return
	}
	if v.checked {
		fmt.Fprintf(w, "tree       %d leaves, root %s\n", v.Size, v.Root)
	}
	if v.Pruned > 0 {
		fmt.Fprintf(w, "pruned     records 1 to %d, at %s; their leaves are in the tree\n", v.Pruned,
			v.PrunedAt.Format(time.RFC3339))
	}
	if v.checked && v.Run == "" {
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
			counted(o.Checkpoints, "checkpoint"), o.Newest, outsideRest(o))
	}
	for _, t := range v.Published {
		of := ""
		if v.checked {
			of = fmt.Sprintf(" of %d", v.Size)
		}
		fmt.Fprintf(w, "published  %s: %d%s records\n", printable(t.Sink), t.Size, of)
	}
}

// summary says what was looked at.
func (v *verification) summary() string {
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

// counted is a number and what is counted.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
