// Package pii finds personal data in values and puts masks in its place.
//
// A mask is typed and stable: the same datum, however it is spelled, nested or
// encoded, is the same mask in every value that one key masks, so that what
// belongs together still does; under another key it is another. A mask says
// nothing about the datum beyond its kind, and what holds only masks is masked
// no further: Mask(Mask(x)) is Mask(x).
//
// What cannot be searched within bounds is masked whole. Names are found where
// a field says that they are names; in running text they are not.
package pii

import (
	"bytes"
	"crypto/sha256"
)

// Rules is the number of this set of rules. It changes whenever some value is
// masked differently than before, so that whoever keeps masked values knows to
// make them again.
const Rules = 2

// KeySize is the length of a key in bytes.
const KeySize = 32

// New makes the masker of a key, of which every byte counts; [KeySize] random
// bytes are a good one.
func New(key []byte) *Masker {
	if len(key) > sha256.BlockSize {
		sum := sha256.Sum256(key)
		key = sum[:]
	}
	m := &Masker{}
	copy(m.inner[:], key)
	copy(m.outer[:], key)
	for i := range m.inner {
		m.inner[i] ^= 0x36
		m.outer[i] ^= 0x5c
	}
	return m
}

// Mask returns value with a mask in the place of each personal datum: value
// itself when there is none. The domain says where a plain name is a person's.
// JSON stays JSON, its order and its numbers as they were written; a number
// that is personal becomes a text.
func (m *Masker) Mask(domain string, value []byte) (masked []byte) {
	defer func() { // a value that is stored must not end whoever reads it
		if recover() != nil {
			masked = m.whole(value)
		}
	}()
	return m.mask(domain, value)
}

func (m *Masker) mask(domain string, value []byte) []byte {
	w := work{masker: m, isContacts: domain == "contacts", budget: maxWork*len(value) + minWork}
	w.text = w.room[:0]
	out := w.settle(value, 0)
	if w.gaveUp {
		return m.whole(value)
	}
	return out
}

// MaskKey is Mask for the name of a value. Each datum in it shows as a mask, so
// that [Marks] tells a masked name from one that is not: a name that encodes its
// datum is masked whole.
func (m *Masker) MaskKey(domain, key string) string {
	out := m.Mask(domain, []byte(key))
	if string(out) == key || bytes.Contains(out, []byte{'<'}) && len(Marks(out)) > 0 {
		return string(out)
	}
	w := work{masker: m}
	return w.mark(Data, []byte(key))
}

// settle masks value until another look finds nothing more: what stood beside a
// datum may be one without it.
func (w *work) settle(value []byte, depth int) []byte {
	for range maxRounds {
		s := search{work: w}
		s.document(value, depth)
		if w.gaveUp || len(s.spans) == 0 {
			return value
		}
		hadNul := bytes.IndexByte(value, 0) >= 0
		value = s.splice(value)
		if s.isClosed && (!hadNul || bytes.IndexByte(value, 0) >= 0) { // short addresses are none beside a NUL
			return value
		}
	}
	w.gaveUp = true
	return value
}

// whole is the mask of a value that cannot be searched. It is a JSON text where
// the value may have been JSON.
func (m *Masker) whole(value []byte) []byte {
	w := work{masker: m}
	mark := w.mark(Data, value)
	if c := firstByte(value); c == '{' || c == '[' || c == '"' {
		return []byte(`"` + mark + `"`)
	}
	return []byte(mark)
}
