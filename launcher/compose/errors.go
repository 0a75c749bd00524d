package compose

import (
	"errors"
	"fmt"
	"io/fs"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/launcher/run"
	"runloop.dev/rlp/secrets"
)

// A Error is why nothing was launched, with the exit status that the
// contract gives it.
type Error struct {
	Status int
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ExitStatus is the status of a command that ends with e.
func (e *Error) ExitStatus() int { return e.Status }

// Usagef is what is wrong with what somebody wrote in a command or a request.
func Usagef(format string, args ...any) error {
	return &Error{Status: run.StatusUsage, Err: fmt.Errorf(format, args...)}
}

// InputErr is what is wrong with a file, or with what it is about.
func InputErr(err error) error { return &Error{Status: run.StatusInput, Err: err} }

// A Problem is an error as it is printed: where, what, and what to do.
type Problem struct {
	Path     string `json:"path,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
	ExitCode int    `json:"exit_code"`
}

// Text is the problem in one line, with its place.
func (p Problem) Text() string {
	switch {
	case p.Path == "":
		return p.Message
	case p.Line == 0:
		return fmt.Sprintf("%s: %s", p.Path, p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.Path, p.Line, p.Column, p.Message)
}

// Hinted is the message with what to do.
func (p Problem) Hinted() string { return Hinted(p.Message, p.Hint) }

// Hinted is a message with the hint behind it, if there is one.
func Hinted(message, hint string) string {
	if hint == "" {
		return message
	}
	return message + " (" + hint + ")"
}

// ProblemOf finds the place in an error, where it has one.
func ProblemOf(err error) Problem {
	var pe *policy.Error
	var te *tomlfile.Error
	var be *bundles.Error
	switch {
	case errors.As(err, &pe):
		return ofFindings(pe)
	case errors.As(err, &te):
		return Problem{Path: te.Pos.File, Line: te.Pos.Line, Column: te.Pos.Column, Message: te.Msg, Hint: te.Hint}
	case errors.As(err, &be):
		return Problem{Path: be.File, Line: be.Line, Column: be.Column, Message: be.Message, Hint: be.Hint}
	}
	return Problem{Message: err.Error()}
}

// ofFindings is the first error of a document, and how many follow.
func ofFindings(pe *policy.Error) Problem {
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
	p := Problem{Path: first.Path, Line: first.Line, Column: first.Column, Message: first.Message, Hint: first.Hint}
	if more > 0 {
		p.Message += fmt.Sprintf(" (and %d more; rlp caps lint shows all)", more)
	}
	return p
}

// SecretsErr gives an error of a provider its exit status.
func SecretsErr(err error) error {
	var mode *secrets.ModeError
	switch {
	case errors.As(err, &mode):
		return InputErr(err)
	case errors.Is(err, errors.ErrUnsupported):
		return &Error{Status: run.StatusUnavailable, Err: err}
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Status: run.StatusFinding, Err: err}
	}
	return InputErr(err)
}
