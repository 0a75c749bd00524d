package pii

import "crypto/sha256"

// Bounds of the search. The work is counted in bytes looked at.
const (
	maxWork   = 24 // for each byte of the value
	minWork   = 4 << 10
	maxDepth  = 8 // encodings inside one another
	maxRounds = 4 // looks at what the look before has changed
)

// A Masker masks for one tenant. It may be used by several goroutines.
type Masker struct {
	inner, outer [sha256.BlockSize]byte // the key, as HMAC pads it
}

// A work is the masking of one value.
type work struct {
	masker     *Masker
	isContacts bool
	budget     int
	gaveUp     bool   // out of bounds: the value is masked whole
	text       []byte // what is being hashed; in room as long as it fits
	room       [256]byte
}

// mac is HMAC-SHA256 of the kind and the datum. It is written out since a value
// has many short data, and crypto/hmac allocates for each.
func (w *work) mac(k Kind, datum []byte) [sha256.Size]byte {
	w.text = append(append(append(w.text[:0], w.masker.inner[:]...), byte(k)), datum...)
	inner := sha256.Sum256(w.text)
	w.text = append(append(w.text[:0], w.masker.outer[:]...), inner[:]...)
	return sha256.Sum256(w.text)
}

// spend counts n bytes as looked at and reports whether the search may go on.
func (w *work) spend(n int) bool {
	w.budget -= n + 1
	w.gaveUp = w.gaveUp || w.budget < 0
	return !w.gaveUp
}
