// Package ident is the names that become parts of paths, keys and records:
// agents, tenants and runs.
//
// A value of one of these types is proof that its text was checked: they are
// structs, so that no text is converted into one by writing a conversion, and
// only the Parse functions and [NewRun] make a value that is not zero. A zero
// value names nothing and its String is empty.
package ident

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// ErrInvalid is wrapped by every error of this package.
var ErrInvalid = errors.New("not a valid name")

// MaxLen is the length in bytes above which no agent id and no tenant goes.
const MaxLen = 64

// An Error is a text that is no name of its kind. Want says what one looks
// like and Hint, where there is one, what to write instead of this text.
type Error struct {
	Kind string // "agent id", "tenant" or "run id"
	Text string // as given, shortened
	Want string
	Hint string
}

// Error returns the text, quoted, and what to write instead.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s %q: write %s", e.Kind, e.Text, e.Want)
	if e.Hint != "" {
		s += fmt.Sprintf(", such as %q", e.Hint)
	}
	return s
}

// Unwrap returns [ErrInvalid].
func (e *Error) Unwrap() error { return ErrInvalid }

const (
	wantAgent  = "a lower-case letter, then at most 63 of a-z, 0-9, _ and -"
	wantTenant = "1 to 64 of A-Z, a-z, 0-9, _ and -"
	wantRun    = "a UUID of version 7 in lower case, as `rlp audit list` prints it"
)

// An Agent is the id of an agent: ^[a-z][a-z0-9_-]{0,63}$. Two ids that are
// different are different files on every file system, so no agent sheds or
// inherits what an operator wrote for another.
type Agent struct{ s string }

// ParseAgent checks an agent id. The error is an [*Error].
func ParseAgent(s string) (Agent, error) {
	if s == "" || len(s) > MaxLen || !isLower(s[0]) || !all(s, isAgentByte) {
		return Agent{}, &Error{Kind: "agent id", Text: shorten(s), Want: wantAgent, Hint: suggest(s)}
	}
	return Agent{s}, nil
}

// AgentOf is the id of an agent that is a file without a bundle: the name of the
// file without .wasm, in lower case, other characters as _, and m_ before what does
// not begin with a letter.
func AgentOf(file string) (Agent, error) {
	const end = ".wasm"
	if n := len(file) - len(end); n >= 0 && strings.EqualFold(file[n:], end) {
		file = file[:n]
	}
	id := strings.Map(func(r rune) rune {
		if r = unicode.ToLower(r); r < utf8.RuneSelf && isAgentByte(byte(r)) {
			return r
		}
		return '_'
	}, file)
	if id == "" || !isLower(id[0]) {
		id = "m_" + id
	}
	if len(id) > MaxLen {
		return Agent{}, fmt.Errorf("%w: the agent's id would be %s, which has %d characters of at most %d", ErrInvalid,
			shorten(id), len(id), MaxLen)
	}
	return ParseAgent(id)
}

// String returns the id as it was parsed.
func (a Agent) String() string { return a.s }

// IsZero reports whether a names no agent.
func (a Agent) IsZero() bool { return a.s == "" }

// A Tenant is the name of a tenant: ^[A-Za-z0-9_-]{1,64}$.
type Tenant struct{ s string }

// ParseTenant checks the name of a tenant. The error is an [*Error].
func ParseTenant(s string) (Tenant, error) {
	if s == "" || len(s) > MaxLen || !all(s, isTenantByte) {
		return Tenant{}, &Error{Kind: "tenant", Text: shorten(s), Want: wantTenant}
	}
	return Tenant{s}, nil
}

// String returns the name as it was parsed.
func (t Tenant) String() string { return t.s }

// IsZero reports whether t names no tenant.
func (t Tenant) IsZero() bool { return t.s == "" }

// A Run is the id of one run: a UUID of version 7, so that ids sort by the time
// at which their runs began.
type Run struct{ u uuid.UUID }

// NewRun returns an id that no run had before.
func NewRun() (Run, error) {
	u, err := uuid.NewV7()
	if err != nil {
		return Run{}, fmt.Errorf("making a run id: %w", err)
	}
	return Run{u}, nil
}

// ParseRun checks a run id in the one form in which ids are written: 36
// characters, lower case. The error is an [*Error].
func ParseRun(s string) (Run, error) {
	u, err := uuid.Parse(s)
	if err != nil || u.Version() != 7 || u.Variant() != uuid.RFC4122 || u.String() != s {
		return Run{}, &Error{Kind: "run id", Text: shorten(s), Want: wantRun}
	}
	return Run{u}, nil
}

// String returns the id in its one form, and "" for the zero Run.
func (r Run) String() string {
	if r.IsZero() {
		return ""
	}
	return r.u.String()
}

// IsZero reports whether r names no run.
func (r Run) IsZero() bool { return r.u == uuid.Nil }

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

func isAgentByte(c byte) bool {
	return isLower(c) || '0' <= c && c <= '9' || c == '_' || c == '-'
}

func isTenantByte(c byte) bool { return isAgentByte(c) || 'A' <= c && c <= 'Z' }

func all(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

// shorten keeps an error from being as long as what was given.
func shorten(s string) string {
	if len(s) <= 2*MaxLen {
		return s
	}
	cut := 2 * MaxLen
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// suggest returns the agent id nearest to s, or "". It is only ever shown: an
// id that was changed silently would meet the override of another agent.
func suggest(s string) string {
	if len(s) > MaxLen {
		return ""
	}
	var b strings.Builder
	for _, r := range s {
		switch r = unicode.ToLower(r); {
		case r < utf8.RuneSelf && isAgentByte(byte(r)):
			b.WriteRune(r)
		case r == ' ', r == '.':
			b.WriteByte('-')
		default:
			return ""
		}
	}
	id := strings.TrimLeft(b.String(), "0123456789_-")
	if id == "" || id == s {
		return ""
	}
	return id
}
