package caps

// TEMPORARY: signatures that the other rooms compile against while the bodies
// are being written; this file disappears.

type Pos struct {
	File   string
	Line   int
	Column int
}

type Grant struct {
	Family Family
	Modes  ModeSet
	Scope  string
}

func (g Grant) String() string              { return "" }
func ParseGrant(s string) (Grant, error)    { return Grant{}, nil }

type Entry struct {
	Grant   Grant
	Pos     Pos
	Implied bool
}

type Bound struct {
	Family Family
	Modes  ModeSet
	Pos    Pos
}

type Layer struct {
	Name   string
	Bounds []Bound
	Allow  []Entry
	Deny   []Entry
	Spare  []Entry
	Limits Limits
}

type Request struct {
	Family Family
	Mode   Mode
	Name   string
}

type Code uint8

type Decision struct {
	Allow bool
	Code  Code
	Layer int16
	Scope int32
}

type Set struct{}

func Base(entries []Entry, limits Limits) Set        { return Set{} }
func (s Set) Narrow(l *Layer) (Set, []Change)         { return s, nil }
func (s Set) Check(r Request) Decision                { return Decision{} }
func (s Set) Grants() []Grant                         { return nil }
func (s Set) LayerName(i int16) string                { return "" }

type Change struct{}
type Limits struct{}
