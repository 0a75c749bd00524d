package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// A statusError is an error with the exit status that the contract gives it.
type statusError = compose.Error

func usagef(format string, args ...any) error {
	return &statusError{Status: launcher.StatusUsage, Err: fmt.Errorf(format, args...)}
}

func inputErr(err error) error { return &statusError{Status: launcher.StatusInput, Err: err} }

// exitWith ends the program with status and prints nothing more.
func exitWith(status int) error { return &statusError{Status: status, Err: errSilent} }

// interrupted is err, unless that came of the operator's interrupting.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return &statusError{Status: launcher.StatusCancelled, Err: errors.New("interrupted by the operator")}
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
	return &statusError{Status: status, Err: printed}
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
	p := compose.ProblemOf(err)
	p.ExitCode = status
	a.say(p.Text())
	if p.Hint != "" {
		fmt.Fprintln(a.stderr, fitted(a.stderr, "  hint: "+printable(p.Hint)))
	}
	if a.json {
		document := map[string]any{"error": p}
		if a.launching { // who reads reports finds what a report has
			outcome := launcher.Refused
			if status == launcher.StatusCancelled {
				outcome = launcher.Cancelled
			}
			document["outcome"], document["exit_code"], document["message"] = outcome, status, p.Text()
		}
		_ = a.printJSON(document) // the status says it too
	}
	return status
}

// isUsage reports whether err is cobra's own way to say that the command line
// makes no sense.
func isUsage(err error) bool {
	for _, prefix := range []string{
		"unknown command", "unknown flag", "unknown shorthand", "accepts ", "requires ",
		"invalid argument", "flag needs",
	} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	return false
}
