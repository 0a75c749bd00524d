package pii

import (
	"bytes"
	"slices"
)

// Marks returns the masks in text, each once, also where text encodes them as
// [Masker.Mask] leaves them: in base64 or hexadecimal, or with their brackets as
// JSON, HTML or a URL spells them.
func Marks(text []byte) []string {
	c := collector{budget: maxWork*len(text) + minWork}
	c.marks(text, 0)
	return c.found
}

// A collector looks for masks, within bounds.
type collector struct {
	found  []string
	budget int // bytes that may still be looked at
}

// marks adds the masks in b.
func (c *collector) marks(b []byte, depth int) {
	v := view{b: b}
	for ; depth <= maxDepth; depth++ {
		if c.budget -= len(v.b) + 1; c.budget < 0 {
			return
		}
		for i := 0; i < len(v.b); i++ {
			n := bytes.IndexByte(v.b[i:], '<')
			if n < 0 {
				break
			}
			i += n
			if end := markEnd(v.b, i); end > 0 {
				if m := string(v.b[i:end]); !slices.Contains(c.found, m) {
					c.found = append(c.found, m)
				}
				i = end - 1
			}
		}
		c.encoded(v.b, depth)
		next, changed := v.decode()
		if !changed {
			return
		}
		v = next
	}
}

// encoded looks into the words of b that are long enough for a mask.
func (c *collector) encoded(b []byte, depth int) {
	c.dumps(b, depth)
	const least = (idLen + len("<id:>")) * 4 / 3
	for i := 0; i < len(b); {
		start := i
		for i < len(b) && (class[b[i]]&cWord != 0 || b[i] == '=' && i > start) {
			i++
		}
		if i-start < least {
			i = max(i, start+1)
			continue
		}
		text, _ := decodeHex(b[start:i])
		if text == nil {
			text, _ = decodeBase64(b[start:i])
		}
		if text != nil {
			c.marks(text, depth+1)
		}
	}
}

// dumps adds the masks in the dumps in b.
func (c *collector) dumps(b []byte, depth int) {
	for i, floor := 0, 0; i < len(b); i++ {
		if !isDumpGap(b[i]) || i < floor {
			continue
		}
		if p := gapAt(b, i); p >= floor {
			d, ok := dumpAround(b, p, floor)
			floor = max(p+1, d.end)
			if ok {
				d.read(b)
				c.marks(d.text, depth+1)
			}
		}
	}
}
