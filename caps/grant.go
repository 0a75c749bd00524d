package caps

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A Grant is a region of one family in one or more of its modes: everything
// within Scope, which is canonical, as [ParseGrant], [CleanPath] and [HostPort]
// make it. The widest scope is "/" for FS and "*" for every other family.
type Grant struct {
	Family Family
	Modes  ModeSet
	Scope  string
}

// Strings is g as capability strings, one for each mode where the spelling
// demands it. Parsed, they are g again.
func (g Grant) Strings() []string {
	if g.Family >= numUniverses {
		return nil
	}
	if g.Family == Net {
		return netWords(g)
	}
	f := &families[g.Family]
	scope := g.Scope
	switch {
	case scope == g.Family.root():
		scope = "*"
	case f.shape == secretTree:
		scope = printSecret(scope)
	}
	var out []string
	for _, a := range f.actions {
		if a.modes&g.Modes == a.modes {
			out = append(out, f.domain+":"+a.word+":"+scope)
			g.Modes &^= a.modes
		}
	}
	return out
}

// String is the capability strings of g, joined by blanks.
func (g Grant) String() string { return strings.Join(g.Strings(), " ") }

func compareGrants(a, b Grant) int {
	if a.Family != b.Family {
		return cmp.Compare(a.Family, b.Family)
	}
	if c := strings.Compare(a.Scope, b.Scope); c != 0 {
		return c
	}
	return cmp.Compare(a.Modes, b.Modes)
}

// printSecret leaves out a port that the spelling implies.
func printSecret(scope string) string {
	id, host, bound := strings.Cut(scope, "@")
	if !bound {
		return scope
	}
	return id + "@" + strings.TrimSuffix(host, ":443")
}

// A Pos is a place in a policy file; Line and Column count from 1. The zero
// Pos is no place, as that of a built-in layer.
type Pos struct {
	File   string
	Line   int
	Column int
}

// String is "file:line:col", with what is missing left out.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	s := strconv.Itoa(p.Line)
	if p.Column > 0 {
		s += ":" + strconv.Itoa(p.Column)
	}
	if p.File != "" {
		s = p.File + ":" + s
	}
	return s
}

// MarshalText makes a Pos its [Pos.String] in JSON.
func (p Pos) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// An Entry is a Grant as somebody wrote it. Implied marks what no one wrote out
// (the domains that kb_read = true stands for): that it is not in the base is
// worth no warning.
type Entry struct {
	Grant   Grant
	Pos     Pos
	Implied bool
}

// A Bound says that a layer restricts a family in some modes to what its Allow
// entries leave; Pos is where it says so.
type Bound struct {
	Family Family
	Modes  ModeSet
	Pos    Pos
}

// A Layer is anything that narrows. It restricts each family and mode that has
// a Bound to the union of its Allow entries there, and nothing else; Deny
// takes away as well, and Spare is what Deny leaves again: of the Deny and
// Spare entries that hold a request the deepest decides, and Deny where they
// are equally deep. A Deny of a family's widest scope takes the whole family.
//
// Entries of one Pos are one thing that was written (a host, over https and
// over http): none of them counts as ignored while one is in the base, and when
// none is the first stands for them all.
//
// The zero Layer restricts nothing.
type Layer struct {
	Name   string
	Bounds []Bound
	Allow  []Entry
	Deny   []Entry
	Spare  []Entry
	Limits Limits

	Constraints Constraints
	// Leases bound what is left of the scopes that they name, by time and by
	// how often; they grant nothing.
	Leases []Lease
	// Because is the reason of what this layer refuses; zero: the family's own.
	Because Code
	// Sum says that this layer is what others came to elsewhere, and knows no
	// reasons: it is named only where none of this set's own refuses as well.
	Sum bool
}

// SumPrefix begins the names of layers that are sums, and of no other.
const SumPrefix = "parent:"

func (l *Layer) clone() *Layer {
	return &Layer{
		Name: l.Name, Sum: l.Sum, Limits: l.Limits, Bounds: slices.Clone(l.Bounds),
		Allow: slices.Clone(l.Allow), Deny: slices.Clone(l.Deny), Spare: slices.Clone(l.Spare),
		Constraints: l.Constraints, Leases: slices.Clone(l.Leases), Because: l.Because,
	}
}

// A Request asks for one thing: Name in Mode of Family. Name is canonical: a
// clean absolute path, "host:port" as [HostPort] makes it, a secret's id ("id"
// for Get, "id@host:port" for Use), a name; "*" for Time. What is not is
// refused with [InvalidRequest]. Name may be a view of a buffer that is reused:
// it is never kept.
type Request struct {
	Family Family
	Mode   Mode
	Name   string
}

// String is the capability string that would allow r, as a policy would say it.
func (r Request) String() string {
	g := Grant{Family: r.Family, Modes: 1 << r.Mode, Scope: r.Name}
	if r.Family == Secrets {
		g.Modes = AllModes(Secrets) // policies grant both at once
	}
	return g.String()
}
