package audit

// A Layer is what narrowed a run, as its record holds it: enough to decide
// anything again, and to name the line that decided.
type Layer struct {
	Name string `json:"name" cbor:"1,keyasint"`
	// the reason of what it refuses, where it has one of its own
	Because string `json:"because,omitempty" cbor:"2,keyasint,omitempty"`
	// File is where entries stand that name no other.
	File   string           `json:"file,omitempty" cbor:"3,keyasint,omitempty"`
	Bounds []LayerEntry     `json:"bounds,omitempty" cbor:"4,keyasint,omitempty"` // without scopes
	Allow  []LayerEntry     `json:"allow,omitempty" cbor:"5,keyasint,omitempty"`
	Deny   []LayerEntry     `json:"deny,omitempty" cbor:"6,keyasint,omitempty"`
	Spare  []LayerEntry     `json:"spare,omitempty" cbor:"7,keyasint,omitempty"`
	Limits map[string]int64 `json:"limits,omitempty" cbor:"8,keyasint,omitempty"`
	Leases []LayerEntry     `json:"leases,omitempty" cbor:"9,keyasint,omitempty"`
	// Constraints are by "table.key".
	Constraints map[string]int64 `json:"constraints,omitempty" cbor:"10,keyasint,omitempty"`
	// Left says that entries were left out: there were too many.
	Left bool `json:"left_out,omitempty" cbor:"11,keyasint,omitempty"`
}

// A LayerEntry is one line of a layer. Modes are bits, by the family's own modes.
type LayerEntry struct {
	Family  string `json:"family" cbor:"1,keyasint"`
	Modes   uint32 `json:"modes" cbor:"2,keyasint"`
	Scope   string `json:"scope,omitempty" cbor:"3,keyasint,omitempty"`
	File    string `json:"file,omitempty" cbor:"4,keyasint,omitempty"` // where it is not the layer's
	Line    int    `json:"line,omitempty" cbor:"5,keyasint,omitempty"`
	Column  int    `json:"column,omitempty" cbor:"6,keyasint,omitempty"`
	Expires int64  `json:"expires,omitempty" cbor:"7,keyasint,omitempty"`  // of a lease: milliseconds since 1970
	MaxUses int64  `json:"max_uses,omitempty" cbor:"8,keyasint,omitempty"` // of a lease
	Implied bool   `json:"implied,omitempty" cbor:"9,keyasint,omitempty"`
}
