package launcher

import (
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/jail"
)

// A Resolver gives the canonical form of an absolute path, links resolved;
// missing says that not all of it exists.
type Resolver func(written string) (canonical string, missing bool, err error)

// A PathError is a path of a policy that leads to nothing that could be granted:
// through what is no folder, or in circles.
type PathError struct {
	Pos  caps.Pos // where it is written
	Path string
	Err  error
}

func (e *PathError) Error() string {
	return fmt.Sprintf("%s: resolving the path %s: %v", e.Pos, e.Path, e.Err)
}

func (e *PathError) Unwrap() error { return e.Err }

// resolvers are of the two kinds of paths: programs may be those of a container.
type resolvers struct{ files, programs Resolver }

// Paths is what was learnt of the paths of a policy when they were resolved.
type Paths struct {
	// Aliases are granted paths as they were written, where their canonical form differs.
	Aliases []jail.Alias
	// Missing are the canonical paths that do not exist, each with the place
	// that named it first.
	Missing map[string]caps.Pos
}

// Canonical rewrites every path of p, of files and of programs, to its canonical
// form by the resolver of each, so that grants and layers meet on what the paths are and not on how they
// are spelled. The aliases let a guest go on using a grant as it was written. What a layer
// denies is denied in both spellings.
func Canonical(p Policy, files, programs Resolver) (Policy, Paths, error) {
	resolve := resolvers{once(files), once(programs)}
	var aliases []jail.Alias
	missing := map[string]caps.Pos{}
	out := p
	out.Base = slices.Clone(p.Base)
	for i, e := range out.Base {
		canonical, err := canonicalEntry(e, resolve, missing)
		if err != nil {
			return Policy{}, Paths{}, err
		}
		if e.Grant.Family == caps.FS && canonical.Grant.Scope != e.Grant.Scope {
			aliases = append(aliases, jail.Alias{Written: e.Grant.Scope, Canonical: canonical.Grant.Scope})
		}
		out.Base[i] = canonical
	}
	out.Layers = make([]*caps.Layer, len(p.Layers))
	for i, l := range p.Layers {
		layer, err := canonicalLayer(l, resolve, missing)
		if err != nil {
			return Policy{}, Paths{}, err
		}
		out.Layers[i] = layer
	}
	slices.SortFunc(aliases, func(a, b jail.Alias) int { return strings.Compare(a.Written, b.Written) })
	return out, Paths{slices.CompactFunc(aliases, func(a, b jail.Alias) bool { return a == b }), missing}, nil
}

// once resolves each path once, however many layers name it: one launch has one
// answer to what a path is, and looking costs a system call for each of its parts.
func once(resolve Resolver) Resolver {
	type answer struct {
		canonical string
		missing   bool
		err       error
	}
	known := map[string]answer{}
	return func(written string) (string, bool, error) {
		a, told := known[written]
		if !told {
			a.canonical, a.missing, a.err = resolve(written)
			known[written] = a
		}
		return a.canonical, a.missing, a.err
	}
}

func canonicalLayer(l *caps.Layer, resolve resolvers, missing map[string]caps.Pos) (*caps.Layer, error) {
	out := *l
	out.Allow = slices.Clone(l.Allow)
	for i, e := range out.Allow {
		var err error
		if out.Allow[i], err = canonicalEntry(e, resolve, missing); err != nil {
			return nil, err
		}
	}
	out.Leases = slices.Clone(l.Leases)
	for i, lease := range out.Leases {
		e, err := canonicalEntry(lease.Entry, resolve, nil)
		if err != nil {
			return nil, err
		}
		out.Leases[i].Entry = e
	}
	out.Deny = slices.Clone(l.Deny)
	for _, e := range l.Deny {
		canonical, err := canonicalEntry(e, resolve, nil)
		if err != nil {
			return nil, err
		}
		if canonical.Grant.Scope != e.Grant.Scope {
			out.Deny = append(out.Deny, canonical)
		}
	}
	return &out, nil
}

// canonicalEntry resolves the path of e, and notes in missing, unless that is
// nil, that a path of files does not exist.
func canonicalEntry(e caps.Entry, resolve resolvers, missing map[string]caps.Pos) (caps.Entry, error) {
	switch {
	case e.Grant.Family != caps.FS && e.Grant.Family != caps.Exec, e.Grant.Scope == "/", e.Grant.Scope == "*":
		return e, nil
	}
	of := resolve.files
	if e.Grant.Family == caps.Exec {
		of = resolve.programs
	}
	canonical, absent, err := of(e.Grant.Scope)
	if err != nil {
		return e, &PathError{Pos: e.Pos, Path: e.Grant.Scope, Err: err}
	}
	if _, known := missing[canonical]; absent && !known && missing != nil && e.Grant.Family == caps.FS {
		missing[canonical] = e.Pos
	}
	e.Grant.Scope = canonical
	return e, nil
}
