package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/tomlfile"
	"runloop.dev/rlp/launcher"
)

// A statusError is an error with the exit status that the contract gives it.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// ExitStatus is the status of a command that ends with e.
func (e *statusError) ExitStatus() int { return e.status }

func usagef(format string, args ...any) error {
	return &statusError{launcher.StatusUsage, fmt.Errorf(format, args...)}
}

func inputErr(err error) error { return &statusError{launcher.StatusInput, err} }

// exitWith ends the program with status and prints nothing more.
func exitWith(status int) error { return &statusError{status, errSilent} }

// interrupted is err, unless that came of the operator's interrupting.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return &statusError{launcher.StatusCancelled, errors.New("interrupted by the operator")}
}

// ending ends with status after a document was printed, if it was: nobody who
// stops reading, and no full disk, makes another status of one that says what
// went wrong.
func ending(status int, printed error) error {
	switch {
	case status == launcher.StatusOK:
		return printed
	case printed == nil || errors.Is(printed, syscall.EPIPE):
		return exitWith(status)
	}
	return &statusError{status, printed}
}

// finish prints what went wrong, if anything, and returns the exit status.
func (a *app) finish(err error) int {
	if err == nil {
		return launcher.StatusOK
	}
	status := launcher.StatusFinding
	var se interface{ ExitStatus() int } // an error of this package, or of launcher/ask
	if errors.As(err, &se) {
		status = se.ExitStatus()
	} else if isUsage(err) {
		status = launcher.StatusUsage
		err = fmt.Errorf("%w; see rlp --help", err)
	}
	if errors.Is(err, errSilent) {
		return status
	}
	if se == nil && errors.Is(err, syscall.EPIPE) {
		return launcher.StatusOK // whoever read has seen enough
	}
	p := problemOf(err)
	p.ExitCode = status
	fmt.Fprintf(a.stderr, "rlp: %s\n", printableLines(p.text()))
	if p.Hint != "" {
		fmt.Fprintf(a.stderr, "  hint: %s\n", printable(p.Hint))
	}
	if a.json {
		document := map[string]any{"error": p}
		if a.launching { // who reads reports finds what a report has
			outcome := launcher.Refused
			if status == launcher.StatusCancelled {
				outcome = launcher.Cancelled
			}
			document["outcome"], document["exit_code"], document["message"] = outcome, status, p.text()
		}
		_ = a.printJSON(document) // the status says it too
	}
	return status
}

// A problem is an error as it is printed: where, what, and what to do.
type problem struct {
	Path     string `json:"path,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
	ExitCode int    `json:"exit_code"`
}

func (p problem) text() string {
	switch {
	case p.Path == "":
		return p.Message
	case p.Line == 0:
		return fmt.Sprintf("%s: %s", p.Path, p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.Path, p.Line, p.Column, p.Message)
}

// problemOf finds the place in an error, where it has one.
func problemOf(err error) problem {
	var pe *policy.Error
	var te *tomlfile.Error
	var be *bundles.Error
	switch {
	case errors.As(err, &pe):
		return ofFindings(pe)
	case errors.As(err, &te):
		return problem{Path: te.Pos.File, Line: te.Pos.Line, Column: te.Pos.Column, Message: te.Msg, Hint: te.Hint}
	case errors.As(err, &be):
		return problem{Path: be.File, Line: be.Line, Column: be.Column, Message: be.Message, Hint: be.Hint}
	}
	return problem{Message: err.Error()}
}

// ofFindings is the first error of a document, and how many follow.
func ofFindings(pe *policy.Error) problem {
	var first *policy.Finding
	more := 0
	for i := range pe.Findings {
		if pe.Findings[i].Severity != policy.SeverityError {
			continue
		}
		if first == nil {
			first = &pe.Findings[i]
		} else {
			more++
		}
	}
	p := problem{Path: first.Path, Line: first.Line, Column: first.Column, Message: first.Message, Hint: first.Hint}
	if more > 0 {
		p.Message += fmt.Sprintf(" (and %d more; rlp caps lint shows all)", more)
	}
	return p
}

// isUsage reports whether err is cobra's own way to say that the command line
// makes no sense.
func isUsage(err error) bool {
	for _, prefix := range []string{"unknown command", "unknown flag", "unknown shorthand", "accepts ", "requires ", "invalid argument", "flag needs"} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	return false
}
