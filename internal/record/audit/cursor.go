package audit

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// What a cursor reads for a [Transcoder], which judges all that it passes over.

// expect reads the key of a map's next member.
func (c *cursor) expect(key uint64) {
	if c.number() != key {
		c.bad = true
	}
}

func (c *cursor) ordered(do func(key uint64)) {
	last := int64(-1)
	c.members(func(key uint64) {
		if key > math.MaxInt32 || int64(key) <= last {
			c.bad = true
			return
		}
		last = int64(key)
		do(key)
	})
}

func (c *cursor) raw() []byte {
	begin := c.p
	c.skip(0)
	return begin[:len(begin)-len(c.p)]
}

// utf8 is a text. One that is no UTF-8 has a form of its own in JSON, which is
// what the long way is for.
func (c *cursor) utf8() []byte {
	p := c.text()
	if !utf8.Valid(p) {
		c.bad = true
	}
	return p
}

func (c *cursor) octets() []byte {
	major, n := c.head()
	if major != 2 {
		c.bad = true
	}
	return c.take(n)
}

func (c *cursor) integer() int64 {
	major, n := c.head()
	if major > 1 || n > math.MaxInt64 {
		c.bad = true
		return 0
	}
	if major == 1 {
		return -1 - int64(n)
	}
	return int64(n)
}

func (c *cursor) float() float64 {
	if c.bad || len(c.p) == 0 {
		c.bad = true
		return 0
	}
	first := c.p[0]
	c.p = c.p[1:]
	switch first {
	case 0xf9:
		if p := c.take(2); p != nil {
			return half(binary.BigEndian.Uint16(p))
		}
	case 0xfa:
		if p := c.take(4); p != nil {
			return float64(math.Float32frombits(binary.BigEndian.Uint32(p)))
		}
	case 0xfb:
		if p := c.take(8); p != nil {
			return math.Float64frombits(binary.BigEndian.Uint64(p))
		}
	}
	c.bad = true
	return 0
}

// half is the value of a number in 16 bits (IEEE 754 binary16).
func half(h uint16) float64 {
	exp, frac := int(h>>10&31), float64(h&1023)
	var f float64
	switch exp {
	case 0:
		f = math.Ldexp(frac, -24)
	case 31:
		f = math.Inf(1)
		if frac != 0 {
			f = math.NaN()
		}
	default:
		f = math.Ldexp(frac+1024, exp-25)
	}
	if h>>15 != 0 {
		f = -f
	}
	return f
}
