package run

import (
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/jail"
)

// A Resolver says what an absolute path leads to.
type Resolver func(written string) (jail.Resolved, error)

// Resolvers are of the paths of a policy.
type Resolvers struct {
	// Files resolves paths of files, Programs those of programs, which may be in a container.
	Files, Programs Resolver
	// Asked resolves the files that somebody else than the operator asks to be
	// left with; nil: Files does.
	Asked Resolver
	// Base and BasePrograms resolve what a bundle asks for that somebody else than
	// the operator sent; nil: Files and Programs do.
	Base, BasePrograms Resolver
}

// BaseLayer is the name of the layer of a bundle's own leases.
const BaseLayer = "policy.caps"

// complete is r with what stands for the resolvers that there are not.
func (r Resolvers) complete() Resolvers {
	r.Files, r.Programs = once(r.Files), once(r.Programs)
	if r.Asked == nil {
		r.Asked = r.Files
	}
	if r.Base == nil {
		r.Base, r.BasePrograms = r.Files, r.Programs
	}
	return r
}

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

// Paths is what was learnt of the paths of a policy when they were resolved.
type Paths struct {
	// Aliases are granted paths as they were written, where their canonical form differs.
	Aliases []jail.Alias
	// Missing are the canonical paths that do not exist, each with the place
	// that named it first.
	Missing map[string]caps.Pos
	// Redirects are what links led elsewhere, in the order of the policy.
	Redirects []Redirect
	// Links are the links on the way to any file that the policy names: who
	// replaces one chooses what the next launch makes of the name.
	Links []string
	// AsWritten says that what the bundle asks for was taken as it is written: who
	// sent it may not learn what is on the way to a path, or at it.
	AsWritten bool
}

// A Redirect is a path of a base, or one that a layer allows or leases, which is
// not the path that it was written as.
type Redirect struct {
	Pos           caps.Pos
	Layer         string // "base", or the layer's name
	Family        caps.Family
	Written, Path string
	// Link is the first link on the way that is no entry of the root folder; ""
	// when there is no other.
	Link string
	// Instead is what to write at Pos, where that is another part of a path than
	// the whole; "": Path.
	Instead string
}

// Canonical rewrites every path of p, of files and of programs, to its canonical
// form, so that grants and layers meet on what the paths are and not on how they
// are spelled. The aliases let a guest go on using a grant as it was written. What a layer
// denies is denied in both spellings.
func Canonical(p Policy, resolve Resolvers) (Policy, Paths, error) {
	w := writing{resolve: resolve.complete(), operators: p.Operators()}
	w.paths.AsWritten = resolve.Base != nil
	w.paths.Missing, w.programs, w.foreign = map[string]caps.Pos{}, map[string]bool{}, p.Within == nil
	out := p
	out.Base = slices.Clone(p.Base)
	for i, e := range out.Base {
		var err error
		if out.Base[i], err = w.granted("base", e, w.resolve.Base, w.resolve.BasePrograms); err != nil {
			return Policy{}, Paths{}, err
		}
		if e.Grant.Family == caps.Exec {
			w.programs[out.Base[i].Grant.Scope] = true
		}
		if e.Grant.Family == caps.FS && out.Base[i].Grant.Scope != e.Grant.Scope {
			w.paths.Aliases = append(w.paths.Aliases, jail.Alias{Written: e.Grant.Scope, Canonical: out.Base[i].Grant.Scope})
		}
	}
	out.Layers = make([]*caps.Layer, len(p.Layers))
	for i, l := range p.Layers {
		layer, err := w.layer(l)
		if err != nil {
			return Policy{}, Paths{}, err
		}
		out.Layers[i] = layer
	}
	slices.SortFunc(w.paths.Aliases, func(a, b jail.Alias) int { return strings.Compare(a.Written, b.Written) })
	w.paths.Aliases = slices.Compact(w.paths.Aliases)
	slices.Sort(w.paths.Links)
	w.paths.Links = slices.Compact(w.paths.Links)
	return out, w.paths, nil
}

// once resolves each path once, however many layers name it: one launch has one
// answer to what a path is, and looking costs a system call for each of its parts.
func once(resolve Resolver) Resolver {
	type answer struct {
		jail.Resolved
		err error
	}
	known := map[string]answer{}
	return func(written string) (jail.Resolved, error) {
		a, told := known[written]
		if !told {
			a.Resolved, a.err = resolve(written)
			known[written] = a
		}
		return a.Resolved, a.err
	}
}

// A writing is the rewriting of one policy.
type writing struct {
	resolve   Resolvers
	operators []*caps.Layer
	foreign   bool            // layers that are not the operator's are those of a stranger, not of an agent
	programs  map[string]bool // of the base
	paths     Paths
}

// named are the programs of the base by any of their names. What else a stranger
// names stays as it is written: where it leads is not theirs to learn.
func (w *writing) named(written string) (jail.Resolved, error) {
	r, _ := w.resolve.BasePrograms(written) // what fails is none of them
	if !w.programs[r.Path] {
		return jail.Resolved{Path: written}, nil
	}
	return r, nil
}

func (w *writing) layer(l *caps.Layer) (*caps.Layer, error) {
	out, files := *l, w.resolve.Files
	programs := w.resolve.Programs
	if l.Name == BaseLayer {
		files, programs = w.resolve.Base, w.resolve.BasePrograms
	}
	asked := !slices.Contains(w.operators, l)
	if asked {
		files = w.resolve.Asked
	}
	if asked = asked && w.foreign; asked {
		programs = w.named
	}
	out.Allow = slices.Clone(l.Allow)
	for i, e := range out.Allow {
		var err error
		if out.Allow[i], err = w.granted(l.Name, e, files, programs); err != nil {
			return nil, err
		}
	}
	out.Leases = slices.Clone(l.Leases)
	for i, lease := range out.Leases {
		e, r, err := w.entry(lease.Entry, files, programs)
		if err != nil {
			return nil, err
		}
		w.redirected(l.Name, lease.Entry, r)
		out.Leases[i].Entry = e
	}
	out.Deny = slices.Clone(l.Deny)
	for _, e := range l.Deny {
		canonical, _, err := w.entry(e, w.resolve.Files, w.resolve.Programs)
		if asked && err != nil {
			continue // it denies what is written, and nothing else is there to deny
		}
		if err != nil {
			return nil, err
		}
		if canonical.Grant.Scope != e.Grant.Scope {
			out.Deny = append(out.Deny, canonical)
		}
	}
	return &out, nil
}

// granted is an entry by which something is granted or left.
func (w *writing) granted(layer string, e caps.Entry, files, programs Resolver) (caps.Entry, error) {
	canonical, r, err := w.entry(e, files, programs)
	if err != nil {
		return e, err
	}
	w.redirected(layer, e, r)
	if _, known := w.paths.Missing[r.Path]; r.Missing && !known && e.Grant.Family == caps.FS {
		w.paths.Missing[r.Path] = e.Pos
	}
	return canonical, nil
}

// redirected notes that e, as it is written, is not what it leads to.
func (w *writing) redirected(layer string, e caps.Entry, r jail.Resolved) {
	if r.Path == "" || r.Path == e.Grant.Scope {
		return
	}
	w.paths.Redirects = append(w.paths.Redirects, Redirect{
		Pos: e.Pos, Layer: layer, Family: e.Grant.Family, Written: e.Grant.Scope, Path: r.Path, Link: r.Redirect(),
	})
}

// entry resolves the path of e, by files or by programs. What has no path comes
// back as it is.
func (w *writing) entry(e caps.Entry, files, programs Resolver) (caps.Entry, jail.Resolved, error) {
	of := files
	switch {
	case e.Grant.Family != caps.FS && e.Grant.Family != caps.Exec, e.Grant.Scope == "/", e.Grant.Scope == "*":
		return e, jail.Resolved{}, nil
	case e.Grant.Family == caps.Exec:
		of = programs
	}
	r, err := of(e.Grant.Scope)
	if err != nil {
		return e, r, &PathError{Pos: e.Pos, Path: e.Grant.Scope, Err: err}
	}
	if e.Grant.Family == caps.FS {
		w.paths.Links = append(w.paths.Links, r.Links...)
	}
	e.Grant.Scope = r.Path
	return e, r, nil
}
