package caps

import "math"

// A Constraint is one condition on how something granted may be used, that is
// no scope: a number or a switch.
type Constraint uint8

// The constraints.
const (
	NetMaxResponseBytes Constraint = iota
	NetMaxRequestBytes
	NetTimeoutMS
	NetAllowRedirects
	NetMinTLS // 12 or 13
	KBMaxValueBytes
	ExecTimeoutMS
	ModelMaxTokens
	MCPMaxRequestBytes // of the arguments of one call
	NumConstraints
)

// A Polarity says which of two values is the stricter one.
type Polarity uint8

// The polarities.
const (
	AtMost  Polarity = iota // a maximum: the lesser one
	AtLeast                 // a minimum: the greater one
	Allow                   // a permission: false
	Require                 // a demand: true
)

// IsSwitch reports whether values are true and false, 1 and 0.
func (p Polarity) IsSwitch() bool { return p == Allow || p == Require }

type constraint struct {
	table, key string // [constraints.<table>] key
	polarity   Polarity
}

var constraints = [NumConstraints]constraint{
	NetMaxResponseBytes: {"net", "max_response_bytes", AtMost},
	NetMaxRequestBytes:  {"net", "max_request_bytes", AtMost},
	NetTimeoutMS:        {"net", "timeout_ms", AtMost},
	NetAllowRedirects:   {"net", "allow_redirects", Allow},
	NetMinTLS:           {"net", "min_tls", AtLeast},
	KBMaxValueBytes:     {"kb", "max_value_bytes", AtMost},
	ExecTimeoutMS:       {"exec", "timeout_ms", AtMost},
	ModelMaxTokens:      {"model", "max_tokens", AtMost},
	MCPMaxRequestBytes:  {"mcp", "max_request_bytes", AtMost},
}

// Key is where c is written: the table under [constraints], and the key in it.
func (c Constraint) Key() (table, key string) {
	if c >= NumConstraints {
		return "", ""
	}
	return constraints[c].table, constraints[c].key
}

// Polarity is which of two values of c is the stricter one.
func (c Constraint) Polarity() Polarity {
	if c >= NumConstraints {
		return AtMost
	}
	return constraints[c].polarity
}

// ConstraintOf is the constraint that is written under key in a table.
func ConstraintOf(table, key string) (Constraint, bool) {
	for c := range NumConstraints {
		if constraints[c].table == table && constraints[c].key == key {
			return c, true
		}
	}
	return 0, false
}

// Constraints are the conditions that are set, each by its key; one that is not
// set demands nothing. A Constraints is an immutable value; its zero value
// demands nothing.
type Constraints struct {
	set    uint32
	values [NumConstraints]int64
}

// With is x with c set to v; a switch is on for every v but 0. A negative v
// leaves nothing: it makes no sense.
func (x Constraints) With(c Constraint, v int64) Constraints {
	if c >= NumConstraints {
		return x
	}
	switch p := c.Polarity(); {
	case p.IsSwitch() && v != 0:
		v = 1
	case v < 0 && p == AtLeast:
		v = math.MaxInt64
	default:
		v = max(v, 0)
	}
	x.set |= 1 << c
	x.values[c] = v
	return x
}

// Get is the value of c, and whether it is set.
func (x Constraints) Get(c Constraint) (int64, bool) {
	if c >= NumConstraints || x.set&(1<<c) == 0 {
		return 0, false
	}
	return x.values[c], true
}

// Meet is what x and y demand together: each key that either sets, at the
// stricter value.
func (x Constraints) Meet(y Constraints) Constraints {
	for c := range NumConstraints {
		v, ok := y.Get(c)
		if !ok {
			continue
		}
		have, both := x.Get(c)
		switch p := c.Polarity(); {
		case !both:
		case p == AtMost || p == Allow:
			v = min(v, have)
		default:
			v = max(v, have)
		}
		x = x.With(c, v)
	}
	return x
}

// Map is what is set, as "table.key".
func (x Constraints) Map() map[string]int64 {
	m := make(map[string]int64)
	for c := range NumConstraints {
		if v, ok := x.Get(c); ok {
			table, key := c.Key()
			m[table+"."+key] = v
		}
	}
	return m
}
