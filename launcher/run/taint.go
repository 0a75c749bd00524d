package run

import (
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
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

// An Untrusted says what marked a run as holding untrusted content.
type Untrusted struct {
	Cause string `json:"cause"`
}
