package policy

import (
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// A Severity says what a finding does to the document: an error refuses it, a
// warning and an info do not.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// A Finding is something to say about one place of a document. Line and Column
// count from 1, columns in characters; both are 0 where there is no place.
type Finding struct {
	Path     string   `json:"path"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint"` // what to write instead; may be empty
	// Field is the path of a field of a grant, such as "limits.max_steps". The
	// message begins with it.
	Field string `json:"field,omitempty"`
}

// String returns "path:line:column: severity: message (hint) [code]".
func (f Finding) String() string {
	var b strings.Builder
	if p := (tomlfile.Pos{File: f.Path, Line: f.Line, Column: f.Column}).String(); p != "" {
		b.WriteString(p + ": ")
	}
	fmt.Fprintf(&b, "%s: %s", f.Severity, f.Message)
	if f.Hint != "" {
		b.WriteString(" (" + f.Hint + ")")
	}
	fmt.Fprintf(&b, " [%s]", f.Code)
	return b.String()
}

// HasErrors reports whether a finding refuses the document.
func HasErrors(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == SeverityError })
}

// Sort orders findings by file, place and code.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		if a.Column != b.Column {
			return a.Column - b.Column
		}
		return strings.Compare(string(a.Code), string(b.Code))
	})
}

// An Error is a document that is refused: at least one of its findings is an
// error.
type Error struct {
	Findings []Finding
}

// Error returns every finding that is an error, one a line.
func (e *Error) Error() string {
	var lines []string
	for _, f := range e.Findings {
		if f.Severity == SeverityError {
			lines = append(lines, f.String())
		}
	}
	return strings.Join(lines, "\n")
}

// AsError returns an [*Error] if a finding refuses the document, else nil.
func AsError(findings []Finding) error {
	if !HasErrors(findings) {
		return nil
	}
	return &Error{Findings: findings}
}

// A report collects findings while a document is read.
type report struct {
	findings []Finding
}

// add records a finding of a code at a place. The severity is the code's own.
func (r *report) add(pos tomlfile.Pos, code Code, hint, format string, args ...any) {
	r.findings = append(r.findings, Finding{
		Path: pos.File, Line: pos.Line, Column: pos.Column,
		Severity: code.Severity(), Code: code, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

func (r *report) syntax(err error) {
	if e, ok := err.(*tomlfile.Error); ok {
		r.add(e.Pos, CodeSyntax, e.Hint, "%s", e.Msg)
		if e.Field != "" {
			f := &r.findings[len(r.findings)-1]
			f.Field, f.Message = e.Field, e.Field+": "+e.Msg
		}
		return
	}
	r.add(tomlfile.Pos{}, CodeSyntax, "", "%v", err)
}

// is reports whether a value has the kind wanted, and records if not.
func (r *report) is(v *tomlfile.Value, key string, want tomlfile.Kind) bool {
	if v.Kind == want {
		return true
	}
	r.add(v.Pos, CodeWrongType, brackets(v, want == tomlfile.Array), "%s must be %s, not %s", key, want, v.Kind)
	return false
}

// brackets is the hint for a string where a list belongs. The string is not quoted:
// it may have come with a request.
func brackets(v *tomlfile.Value, list bool) string {
	if list && v.Kind == tomlfile.String {
		return `write it in brackets: ["..."]`
	}
	return ""
}

// table returns the table at a key, nil if there is none; another type is an
// error.
func (r *report) table(t *tomlfile.Table, key string) *tomlfile.Table {
	e, ok := t.Get(key)
	if !ok || !r.is(&e.Value, "["+key+"]", tomlfile.TableKind) {
		return nil
	}
	return e.Value.Table
}

func (r *report) known(t *tomlfile.Table, where string, keys []string) {
	for _, e := range t.Entries {
		if !slices.Contains(keys, e.Key) {
			r.add(e.Pos, CodeUnknownKey, tomlfile.Nearest(e.Key, keys), "unknown key %q in %s", e.Key, where)
		}
	}
}

func place(p tomlfile.Pos) caps.Pos { return caps.Pos(p) }
