// Package ask answers questions about agents and their recorded runs: why a
// request is decided as it is, what an agent holds, what another override would
// change, what recorded runs would have been denied, the least policy of what
// they used.
//
// Every answer is a value. A command line prints it, a page or a protocol shows
// it; none of them computes it. An answer for somebody who does not operate the
// host is made of a [Subject] that names no place of it ([Subject.Without]), and
// leaves out what its type says is the host's own.
//
// The package reads no clock and changes nothing.
package ask

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/launcher/places"
	"runloop.dev/rlp/launcher/run"
)

// A Subject is an agent with everything that narrows its next launch.
type Subject struct {
	Bundle   *bundles.Bundle
	Policy   run.Policy
	Paths    run.Paths
	Params   map[string]string // values of placeholders
	Unset    []policy.Param    // placeholders without a value
	Findings []policy.Finding  // of the files that the policy was read from
	Tools    []hostcalls.Tool  // of the bundle
	Override string            // the file of the operator's override of this agent
	Domains  []string          // of the knowledge base, all that there are
	Relaxed  bool              // a link on the way to a path refuses no launch
	Programs run.Resolver      // what a program's path leads to
	Execs    []string          // programs as the bundle's policy wrote them
	Floor    *caps.Layer       // what narrows a run after untrusted content; nil: nothing does
	// names are how its places are told to who does not operate, to whom where links
	// lead is not told; nil: all is ([Subject.Without]).
	names *places.Names
}

// Agent is the name of the agent.
func (s *Subject) Agent() string { return s.Bundle.Manifest.Agent.String() }

// An Error says why a question has no answer.
type Error struct {
	Status int  // the exit status of a command that asked it
	OfHost bool // it is about the operator's files or records: whoever does not operate is not told
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ExitStatus is the exit status of a command that ends with e.
func (e *Error) ExitStatus() int { return e.Status }

// A TextError is what is wrong in a text that came with a question.
type TextError struct {
	Line, Column int
	Why          string
	Err          error // as whoever prints it as a file's says it
}

func (e *TextError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Why)
}
func (e *TextError) Unwrap() error { return e.Err }

func usagef(format string, args ...any) error {
	return &Error{Status: run.StatusUsage, Err: fmt.Errorf(format, args...)}
}

func inputf(format string, args ...any) error {
	return &Error{Status: run.StatusInput, Err: fmt.Errorf(format, args...)}
}

func hostErr(err error) error {
	return &Error{Status: run.StatusInput, OfHost: true, Err: err}
}

// Without is s for somebody who does not operate: its files are named relative to
// the home, and nothing is told of where links lead, nor of what the host keeps for
// itself but that the host does.
func (s *Subject) Without(n *places.Names) *Subject {
	told := *s
	told.names = s.Names(n)
	told.Override = told.names.File(s.Override)
	return &told
}

// Names is n that names what placeholders of s stand for, and what links lead to.
func (s *Subject) Names(n *places.Names) *places.Names {
	n = s.filled(n)
	for _, r := range s.Paths.Redirects {
		n = n.With(r.Path, n.Path(r.Written))
	}
	return n
}

// filled is n that names what placeholders stand for.
func (s *Subject) filled(n *places.Names) *places.Names {
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		n = n.Param(name, s.Params[name])
	}
	return n
}

// told is a policy as it may be told.
func (s *Subject) told(p run.Policy) run.Policy {
	if s.names == nil {
		return p
	}
	p.Base = s.names.Entries(p.Base)
	layers := p.Layers
	p.Layers = nil
	for _, l := range layers {
		if l.Name != caps.ProtectedLayer {
			p.Layers = append(p.Layers, s.names.Layer(l))
		}
	}
	return p
}

// layerName is the name of a layer as it may be told.
func (s *Subject) layerName(name string) string {
	if s.names != nil {
		return places.LayerName(name)
	}
	return name
}

// redirected is where a path leads that the policy writes, or that lies below one: of
// several the longest counts.
func (s *Subject) redirected(path string) string {
	to, rest := path, path
	for _, r := range s.Paths.Redirects {
		if tail, is := places.Below(path, r.Written); is && len(tail) < len(rest) {
			to, rest = r.Path+tail, tail
		}
	}
	return to
}

// file is where a file that an answer names lies.
func (s *Subject) file(name string) string {
	if s.names != nil && !filepath.IsAbs(name) {
		return filepath.Join(s.names.Home(), name)
	}
	return name
}

// plan is what a launch under p would be left.
func plan(p run.Policy) (run.Plan, error) {
	made, err := run.NewPlan(p)
	if err != nil {
		return run.Plan{}, hostErr(err)
	}
	return made, nil
}

// canonical resolves the links of a path or a program, as the grants were. For who
// does not operate nothing of the host is looked at: what a policy wrote is what it
// led to there.
func (s *Subject) canonical(r caps.Request) (caps.Request, error) {
	if r.Family != caps.FS && r.Family != caps.Exec || r.Name == "*" {
		return r, nil
	}
	if s.names != nil {
		r.Name = s.redirected(r.Name)
		return r, nil
	}
	resolve := run.Resolver(jail.Canonical)
	if r.Family == caps.Exec {
		resolve = s.Programs
	}
	to, err := resolve(r.Name)
	if err != nil {
		return r, inputf("resolving %s: %w", r.Name, err)
	}
	r.Name = to.Path
	return r, nil
}
