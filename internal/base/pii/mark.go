package pii

import (
	"bytes"
	"slices"
	"strings"
)

// A Kind is what sort of datum a mask stands for.
type Kind uint8

// The kinds. Data is what could not be searched.
const (
	none Kind = iota
	Email
	Phone
	IBAN
	Card
	Account
	ID
	Address
	Birth
	Name
	Data
	numKinds
)

var kindNames = [numKinds]string{
	Email: "email", Phone: "phone", IBAN: "iban", Card: "card", Account: "account", ID: "id",
	Address: "address", Birth: "birth", Name: "name", Data: "data",
}

// String is the kind as masks show it.
func (k Kind) String() string { return kindNames[k] }

// A mask is <kind:id>. The id has no digits and no vowels: it is neither a
// number that a rule could take for a datum nor a word.
const (
	markLetters = "bcdfghjkmnpqrstv"
	idLen       = 12
	maxMark     = len("<address:>") + idLen
)

// mark is the mask of a datum in its normal form.
func (w *work) mark(k Kind, datum []byte) string {
	sum := w.mac(k, datum)
	name := k.String()
	b := make([]byte, 0, maxMark)
	b = append(append(append(b, '<'), name...), ':')
	for _, c := range sum[:idLen/2] {
		b = append(b, markLetters[c>>4], markLetters[c&15])
	}
	return string(append(b, '>'))
}

// markEnd returns where the mask that begins at b[i] ends, or 0.
func markEnd(b []byte, i int) int {
	if i >= len(b) || b[i] != '<' {
		return 0
	}
	rest := b[i+1:]
	colon := bytes.IndexByte(rest[:min(len(rest), maxMark)], ':')
	if colon < 0 || len(rest) < colon+idLen+2 || rest[colon+1+idLen] != '>' || !isKind(rest[:colon]) {
		return 0
	}
	for _, c := range rest[colon+1 : colon+1+idLen] {
		if strings.IndexByte(markLetters, c) < 0 {
			return 0
		}
	}
	return i + 1 + colon + 1 + idLen + 1
}

func isKind(name []byte) bool {
	for _, k := range kindNames[1:] {
		if string(name) == k {
			return true
		}
	}
	return false
}

// onlyMarks reports whether b is masks and what stands between them.
func onlyMarks(b []byte) bool {
	seen := false
	for i := 0; i < len(b); {
		switch end := markEnd(b, i); {
		case end > 0:
			i, seen = end, true
		case b[i] == ' ' || b[i] == ',' || b[i] == ';':
			i++
		default:
			return false
		}
	}
	return seen
}

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
