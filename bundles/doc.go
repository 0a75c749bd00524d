// Package bundles opens what an agent is shipped in.
//
// A bundle is read whole, once, into memory; whatever is judged, hashed,
// compiled or logged afterwards is those bytes. Nothing goes back to the disk,
// so nothing that changes there between verification and use changes a run.
//
// A name inside a bundle means one file on every system that could unpack it,
// or the bundle is refused: readers that disagree are how a file that was
// checked becomes another file that is used. A directory is held to the rules
// of an archive, so that both forms of one tree are one bundle with one digest.
//
// The package runs nothing and decides no capability.
package bundles

import (
	"errors"
	"fmt"
)

// The bounds of the contract. Sizes are bytes.
const (
	MaxEntries  = 4096
	MaxTotal    = 512 << 20 // of an archive once unpacked, of a directory
	MaxManifest = 1 << 20
	MaxModule   = 64 << 20 // of a module without a bundle
	MaxRatio    = 200      // unpacked over packed
	MaxName     = 255
	MaxDepth    = 64
)

// ErrInvalid is wrapped by every refusal of a bundle: something is wrong with
// what was given, not with reading it.
var ErrInvalid = errors.New("invalid bundle")

// An Error is a refusal: what is wrong, where, and what to do about it. Line
// and Column count from 1 and are 0 where there is no such place.
type Error struct {
	File    string // path of the file, inside the bundle's own path
	Line    int
	Column  int
	Code    string // stable, such as "digest_mismatch"
	Message string
	Hint    string // may be empty
}

// Error returns "file:line:column: message (hint)".
func (e *Error) Error() string {
	s := place(e.File, e.Line, e.Column) + ": " + e.Message
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap returns [ErrInvalid].
func (e *Error) Unwrap() error { return ErrInvalid }

// A Severity says how much a [Finding] matters.
type Severity string

// The severities. Nothing that is an error is a finding: it refuses.
const (
	Warning Severity = "warning"
	Info    Severity = "info"
)

// A Finding is something about a bundle that an operator should know and that
// does not refuse it. Line and Column are 0 where there is no such place.
type Finding struct {
	Path     string   `json:"path"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`
}

// String returns "path:line:column: severity: message".
func (f Finding) String() string {
	return place(f.Path, f.Line, f.Column) + ": " + string(f.Severity) + ": " + f.Message
}

func place(file string, line, column int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, line, column)
}
