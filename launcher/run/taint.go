package run

import (
	"context"
	"fmt"
	"log/slog"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/effect/links"
)

// A Taint says which inputs mark a run as holding untrusted content, and what
// the run holds from then on. The zero Taint calls no file, program or input
// untrusted and trusts no host.
type Taint struct {
	// Untrusted is what the operator calls so; paths are canonical.
	Untrusted []caps.Source
	// Trusted are the hosts whose answers mark no run.
	Trusted []caps.Grant
	// Floor is what a marked run is narrowed by. Only a run that nothing can mark
	// may have none: see [Taint.Possible].
	Floor *caps.Layer
	// Cause is what marked the run before it began: what the run that launched it
	// had taken in. "" is nothing.
	Cause string
	// Warning says why the operator's own floor is not used, and Notice that it
	// is; either may be empty.
	Warning, Notice string
}

// Possible reports whether anything can mark a run of base. What has no call
// that could bring in something untrusted needs no floor.
func (t *Taint) Possible(base []caps.Entry) bool {
	if len(t.Untrusted) > 0 || t.Cause != "" {
		return true
	}
	for _, e := range base {
		switch e.Grant.Family {
		case caps.FS, caps.Time, caps.Env:
		default:
			return true
		}
	}
	return false
}

func (t *Taint) sources() (hostcalls.Sources, error) {
	var s hostcalls.Sources
	var untrusted, trusted []caps.Entry
	for _, u := range t.Untrusted {
		if u.Word == caps.SourceInput {
			s.Input = true
			continue
		}
		untrusted = append(untrusted, caps.Entry{Grant: u.Grant})
	}
	for _, g := range t.Trusted {
		trusted = append(trusted, caps.Entry{Grant: g})
	}
	for _, of := range []struct {
		entries []caps.Entry
		set     *caps.Set
	}{{untrusted, &s.Untrusted}, {trusted, &s.Trusted}} {
		if len(of.entries) == 0 {
			continue
		}
		var err error
		if *of.set, err = caps.Base(of.entries, caps.Limits{}); err != nil {
			return s, fmt.Errorf("reading which inputs are untrusted: %w", err)
		}
	}
	return s, nil
}

// Hosts are those whose answers mark no run.
func (t *Taint) Hosts() (caps.Set, error) {
	s, err := t.sources()
	return s.Trusted, err
}

// Folders are the files and folders that the operator calls untrusted.
func (t *Taint) Folders() []string {
	var list []string
	for _, u := range t.Untrusted {
		if u.Word != caps.SourceInput && u.Grant.Family == caps.FS {
			list = append(list, u.Grant.Scope)
		}
	}
	return list
}

// takesIn reports whether an operation gives the guest what is in a file, a name
// in a folder or the text of a link, or takes a file to where it would be read
// as another: the run is marked then and there, since the other name has no
// mark. That something exists, and its size and times, is not what somebody
// wrote.
func takesIn(op jail.Op) bool {
	switch op {
	case jail.PathOpen, jail.PathReadlink, jail.PathRename, jail.PathLink:
		return true
	}
	return false
}

// takeIn is the permit of an operation once the run is marked, where it takes in
// what lies in an untrusted folder; tree says that it takes all below path along.
// It permits nothing when the mark could not be recorded. path has been led past
// links: each path on the way is put to the gate, so that none leads here unseen.
func (p *pathGate) takeIn(permit gate.Permit, op jail.Op, mode caps.Mode, path string, tree bool) gate.Permit {
	if !permit.OK() || mode != caps.Read || !takesIn(op) {
		return permit
	}
	for _, folder := range p.untrusted {
		if links.Within(path, folder) || tree && links.Within(folder, path) {
			if p.gate.Taint(gate.Cause(caps.SourceWord(caps.FS), path)) != nil {
				return gate.Permit{}
			}
			break
		}
	}
	return permit
}

// staysUntrusted refuses to move or link what lies in an untrusted folder to where
// the next run would read it without being marked.
func (p *pathGate) staysUntrusted(op jail.Op, from, to string) bool {
	if !links.Crosses(p.untrusted, from, to, op == jail.PathLink) {
		return true
	}
	p.gate.Refuse(p.ops[op], caps.Request{Family: caps.FS, Mode: caps.Write, Name: to}, to, caps.UntrustedContext)
	return false
}

// An Untrusted says what marked a run as holding untrusted content.
type Untrusted struct {
	Cause string `json:"cause"`
}

// logFloor says by whom the floor is, where it is not the built-in one or should
// not have been.
func (r *run) logFloor() {
	if n := r.spec.Taint.Notice; n != "" {
		r.spec.Log.LogAttrs(context.Background(), slog.LevelWarn, "untrusted_floor",
			append(r.who(), slog.String("message", n))...)
	}
}

// untrusted is what marked the run; nil if nothing did.
func (r *run) untrusted() *Untrusted {
	if cause, marked := r.gate.Tainted(); marked {
		return &Untrusted{Cause: cause}
	}
	return nil
}
