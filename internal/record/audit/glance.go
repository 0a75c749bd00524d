package audit

import (
	"errors"
	"fmt"
)

// A Glance is what most questions about a record need, read without decoding
// the rest. Its words are views of Stored, the record's stored form.
type Glance struct {
	Stored             []byte
	Seq, RunSeq        uint64
	UnixMS             int64
	Run, Agent, Bundle []byte

	Decided                              bool // it is a decision, and what follows is set
	Deny                                 bool
	Severity                             Severity
	Cap, Op, Target, Tool, Layer, Reason []byte

	Kind []byte // of what is no decision
}

// AtStart is [DecisionRecord.AtStart].
func (g *Glance) AtStart() bool { return atStart(g.Deny, g.Severity, g.Cap) }

// Asked is [DecisionRecord.Asked].
func (g *Glance) Asked() bool { return !g.AtStart() && !IsOfLaunch(g.Cap) }

var errGlance = errors.New("reading an audit record: it is not in the form that records are stored in")

// Read looks at the stored form of a record, as [Codec.Encode] makes it. What
// it skips it does not judge: [Codec.Decode] does.
func (g *Glance) Read(p []byte) error {
	*g = Glance{Stored: p}
	c := cursor{p: p}
	c.members(func(key uint64) {
		switch key {
		case 0:
			if v := c.number(); v != 1 {
				c.bad = true
			}
		case 1:
			g.Seq = c.number()
		case 2:
			g.RunSeq = c.number()
		case 3:
			g.UnixMS = int64(c.number())
		case 4:
			c.members(func(key uint64) { c.textOf(key, field{1, &g.Run}, field{4, &g.Agent}, field{6, &g.Bundle}) })
		case 5:
			g.Decided = true
			c.members(g.decision(&c))
		case 6:
			c.members(func(key uint64) { c.textOf(key, field{1, &g.Kind}) })
		default:
			c.skip(0)
		}
	})
	if c.bad || len(c.p) != 0 {
		return fmt.Errorf("%w (%d bytes)", errGlance, len(p))
	}
	return nil
}

func (g *Glance) decision(c *cursor) func(key uint64) {
	return func(key uint64) {
		switch key {
		case 1:
			g.Tool = c.text()
		case 3:
			g.Cap = c.text()
		case 4:
			g.Op = c.text()
		case 5:
			g.Target = c.text()
		case 7:
			g.Deny = c.truth()
		case 8:
			g.Severity = Severity(c.number())
		case 9:
			g.Reason = c.text()
		case 10:
			g.Layer = c.text()
		default:
			c.skip(0)
		}
	}
}

// A cursor walks over CBOR of definite lengths. Once bad it stays where it is.
type cursor struct {
	p   []byte
	bad bool
}

// head is the major type and the argument of the next item.
func (c *cursor) head() (major byte, n uint64) {
	if c.bad || len(c.p) == 0 {
		c.bad = true
		return 0, 0
	}
	first := c.p[0]
	c.p = c.p[1:]
	major, n = first>>5, uint64(first&31)
	if n < 24 {
		return major, n
	}
	size := 1 << (n - 24)
	if n > 27 || len(c.p) < size {
		c.bad = true
		return 0, 0
	}
	n = 0
	for _, b := range c.p[:size] {
		n = n<<8 | uint64(b)
	}
	c.p = c.p[size:]
	return major, n
}

func (c *cursor) members(do func(key uint64)) {
	major, n := c.head()
	if major != 5 {
		c.bad = true
	}
	for ; n > 0 && !c.bad; n-- {
		do(c.number())
	}
}

func (c *cursor) number() uint64 {
	major, n := c.head()
	if major != 0 {
		c.bad = true
	}
	return n
}

func (c *cursor) truth() bool {
	major, n := c.head()
	if major != 7 || n != 20 && n != 21 {
		c.bad = true
	}
	return n == 21
}

func (c *cursor) text() []byte {
	major, n := c.head()
	if major != 3 {
		c.bad = true
	}
	return c.take(n)
}

// A field is a text under a key, and where it goes.
type field struct {
	key uint64
	to  *[]byte
}

// textOf reads a text into the place of its key, if it has one of these.
func (c *cursor) textOf(key uint64, fields ...field) {
	for _, f := range fields {
		if f.key == key {
			*f.to = c.text()
			return
		}
	}
	c.skip(0)
}

func (c *cursor) take(n uint64) []byte {
	if c.bad || n > uint64(len(c.p)) {
		c.bad = true
		return nil
	}
	p := c.p[:n:n]
	c.p = c.p[n:]
	return p
}

// skip passes over one item, at most 8 deep, as records are.
func (c *cursor) skip(depth int) {
	major, n := c.head()
	switch {
	case depth > 8:
		c.bad = true
	case major == 2 || major == 3:
		c.take(n)
	case major == 4 || major == 5:
		for items := n << (major - 4); items > 0 && !c.bad; items-- {
			c.skip(depth + 1)
		}
	case major == 6:
		c.bad = true // there are no tags
	}
}
