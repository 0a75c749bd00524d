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
	"strings"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/effect/jail"
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
	// home is not told, nor is where links lead; nil: both are ([Subject.Without]).
	home Home
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

// A Home is how files of the operator's are named to somebody who is not to learn
// where the home is: relative to it. The zero Home names every file by its path.
type Home []string

// HomeAt is the home at dir, which may also be reached as one of others.
func HomeAt(dir string, others ...string) Home { return append(Home{dir}, others...) }

// Name is a file, relative to the home if it is in it.
func (h Home) Name(file string) string {
	for _, dir := range h {
		if rel, is := strings.CutPrefix(file, dir+"/"); is {
			return rel
		}
	}
	return file
}

// Pos is a position, its file named so.
func (h Home) Pos(p caps.Pos) caps.Pos {
	p.File = h.Name(p.File)
	return p
}

// Holds reports whether a text names the home.
func (h Home) Holds(text string) bool {
	return slices.ContainsFunc(h, func(dir string) bool { return strings.Contains(text, dir) })
}

// Without is s for somebody who does not operate: its files are named relative to
// the home, and nothing is told of where links lead, nor of what the host keeps for
// itself but that the host does.
func (s *Subject) Without(h Home) *Subject {
	told := *s
	told.home, told.Override = h, h.Name(s.Override)
	return &told
}

// told is a policy as it may be told.
func (s *Subject) told(p run.Policy) run.Policy {
	if s.home == nil {
		return p
	}
	p.Base = s.home.entries(p.Base)
	layers := p.Layers
	p.Layers = nil
	for _, l := range layers {
		if l.Name != caps.ProtectedLayer {
			p.Layers = append(p.Layers, s.home.layer(l))
		}
	}
	return p
}

// layerName is the name of a layer as it may be told.
func (s *Subject) layerName(name string) string {
	if s.home != nil && name == caps.ProtectedLayer {
		return caps.HostLayer
	}
	return name
}

// scope is a path, or another scope, as it may be told: a path as the agent's
// policy wrote it, with its placeholders, relative to the home if it is in it.
func (s *Subject) scope(scope string) string {
	if s.home == nil {
		return scope
	}
	if r, rest, is := s.redirect(scope, func(r run.Redirect) string { return r.Path }); is {
		scope = r.Written + rest
	}
	return s.home.Name(s.unfilled(scope))
}

// unfilled is a path with a placeholder in the place of its value, which is the
// operator's: that of the longest value, for one may lie beneath another.
func (s *Subject) unfilled(path string) string {
	told, most := path, -1
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		if rest, is := below(path, s.Params[name]); is && len(s.Params[name]) > most {
			told, most = "{"+name+"}"+rest, len(s.Params[name])
		}
	}
	return told
}

// redirect is what led a path of the policy elsewhere, and what comes behind it in
// path: of several the one whose side that counts is the longest.
func (s *Subject) redirect(path string, side func(run.Redirect) string) (of run.Redirect, rest string, found bool) {
	for _, r := range s.Paths.Redirects {
		if tail, is := below(path, side(r)); is && (!found || len(tail) < len(rest)) {
			of, rest, found = r, tail, true
		}
	}
	return of, rest, found
}

// below is what comes behind dir in a path that is dir or lies below it.
func below(path, dir string) (rest string, is bool) {
	rest, is = strings.CutPrefix(path, dir)
	return rest, is && (rest == "" || rest[0] == '/')
}

// capability is a capability string as it may be told.
func (s *Subject) capability(text string) string {
	if at := strings.IndexByte(text, '/'); at >= 0 {
		return text[:at] + s.scope(text[at:])
	}
	return text
}

// capabilities are capability strings as they may be told.
func (s *Subject) capabilities(list []string) []string {
	told := make([]string, len(list))
	for i := range list {
		told[i] = s.capability(list[i])
	}
	return told
}

func (h Home) entries(list []caps.Entry) []caps.Entry {
	list = slices.Clone(list)
	for i := range list {
		list[i].Pos = h.Pos(list[i].Pos)
	}
	return list
}

func (h Home) layer(l *caps.Layer) *caps.Layer {
	c := *l
	c.Allow, c.Deny, c.Spare = h.entries(l.Allow), h.entries(l.Deny), h.entries(l.Spare)
	c.Bounds, c.Leases = slices.Clone(l.Bounds), slices.Clone(l.Leases)
	for i := range c.Bounds {
		c.Bounds[i].Pos = h.Pos(c.Bounds[i].Pos)
	}
	for i := range c.Leases {
		c.Leases[i].Pos = h.Pos(c.Leases[i].Pos)
	}
	return &c
}

// file is where a file that an answer names lies.
func (s *Subject) file(name string) string {
	if s.home != nil && !filepath.IsAbs(name) {
		return filepath.Join(s.home[0], name)
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
	if s.home != nil {
		if to, rest, is := s.redirect(r.Name, func(r run.Redirect) string { return r.Written }); is {
			r.Name = to.Path + rest
		}
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
