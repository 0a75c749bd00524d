package values

import (
	"encoding/binary"
	"fmt"
	"slices"

	"runloop.dev/rlp/kb/wire"
	"runloop.dev/rlp/kb/words"
)

// A document of the index is a value at one revision, which is its number. The
// index of a term is cut into chunks of chunkDocs consecutive numbers, so that
// a change rewrites little and a search reads few keys.
const (
	chunkBits = 5
	chunkDocs = 1 << chunkBits
)

// A posting says that a term is in a document.
type posting struct {
	doc    uint64
	n      uint64 // how often
	length uint64 // of the document's text, in words
	// differs, in the index of masked text: the raw text is another, and stands
	// in the index of raw text.
	differs bool
}

const differsBit = 0x80

// appendPosting adds p to a chunk's stored form: the number within the chunk,
// and varints.
func appendPosting(dst []byte, p posting) []byte {
	at := byte(p.doc & (chunkDocs - 1))
	if p.differs {
		at |= differsBit
	}
	dst = append(dst, at)
	dst = binary.AppendUvarint(dst, p.n)
	return binary.AppendUvarint(dst, p.length)
}

// readChunk appends the postings of a chunk to dst; chunk is its number. They
// are in the order of their documents.
func readChunk(dst []posting, chunk uint64, p []byte) ([]posting, error) {
	last := -1
	for len(p) > 0 {
		at := int(p[0] &^ differsBit)
		n, a := binary.Uvarint(p[1:])
		if a <= 0 || at <= last || at >= chunkDocs {
			return dst, fmt.Errorf("%w: a chunk of the index makes no sense", wire.ErrDamaged)
		}
		length, b := binary.Uvarint(p[1+a:])
		if b <= 0 {
			return dst, fmt.Errorf("%w: a chunk of the index is cut", wire.ErrDamaged)
		}
		dst = append(dst, posting{chunk<<chunkBits | uint64(at), n, length, p[0]&differsBit != 0})
		p, last = p[1+a+b:], at
	}
	return dst, nil
}

// A docRecord is what the index knows of a document: where it is stored and
// what has to go when it goes.
type docRecord struct {
	key    string
	masked docTerms
	raw    *docTerms // nil: no other than masked
}

type docTerms struct {
	length int
	words  []string // sorted
}

func docOf(t *words.Terms) docTerms {
	d := docTerms{length: t.Length, words: make([]string, len(t.List))}
	for i, w := range t.List {
		d.words[i] = w.Text
	}
	return d
}

// encode is d's stored form.
func (d *docRecord) encode() []byte {
	flag := byte(0)
	if d.raw != nil {
		flag = 1
	}
	p := appendText([]byte{flag}, d.key)
	p = d.masked.encode(p)
	if d.raw != nil {
		p = d.raw.encode(p)
	}
	return p
}

func (t *docTerms) encode(p []byte) []byte {
	p = binary.AppendUvarint(p, uint64(t.length))
	p = binary.AppendUvarint(p, uint64(len(t.words)))
	for _, w := range t.words {
		p = appendText(p, w)
	}
	return p
}

func appendText(p []byte, s string) []byte {
	return append(binary.AppendUvarint(p, uint64(len(s))), s...)
}

// decodeDoc reads what encode wrote.
func decodeDoc(p []byte) (docRecord, error) {
	r := &docReader{p: p}
	flag := r.byte()
	d := docRecord{key: r.text()}
	d.masked = r.terms()
	if flag == 1 {
		raw := r.terms()
		d.raw = &raw
	}
	if r.bad || len(r.p) > 0 || flag > 1 {
		return d, fmt.Errorf("%w: a document of the index makes no sense", wire.ErrDamaged)
	}
	return d, nil
}

// docKey is the key alone of a stored document.
func docKey(p []byte) (string, error) {
	r := &docReader{p: p}
	r.byte()
	key := r.text()
	if r.bad {
		return "", fmt.Errorf("%w: a document of the index makes no sense", wire.ErrDamaged)
	}
	return key, nil
}

// hasWord is an error unless a stored document has a word in an index. It
// decodes nothing that it need not.
func hasWord(p []byte, index byte, word string) error {
	r := &docReader{p: p}
	hasRaw := r.byte() == 1
	key := r.bytes()
	found := false
	scan := func() bool {
		r.number()
		for n := r.number(); n > 0 && !r.bad; n-- {
			found = string(r.bytes()) == word || found
		}
		return found
	}
	found = scan() && index == indexMasked
	if index == indexRaw && hasRaw {
		found = scan()
	}
	if r.bad || !found {
		return wire.Damagedf("a word leads to %s, which does not have it", key)
	}
	return nil
}

// docLengths are the lengths of a stored document's texts; raw < 0: as masked.
func docLengths(p []byte) (masked, raw int, err error) {
	d, err := decodeDoc(p)
	if err != nil || d.raw == nil {
		return d.masked.length, -1, err
	}
	return d.masked.length, d.raw.length, nil
}

// A docReader reads a stored document; bad says that it made no sense.
type docReader struct {
	p   []byte
	bad bool
}

func (r *docReader) byte() byte {
	if len(r.p) == 0 {
		r.bad = true
		return 0
	}
	b := r.p[0]
	r.p = r.p[1:]
	return b
}

func (r *docReader) number() uint64 {
	n, used := binary.Uvarint(r.p)
	if used <= 0 {
		r.bad, r.p = true, nil
		return 0
	}
	r.p = r.p[used:]
	return n
}

func (r *docReader) text() string { return string(r.bytes()) }

func (r *docReader) bytes() []byte {
	n := r.number()
	if n > uint64(len(r.p)) {
		r.bad, r.p = true, nil
		return nil
	}
	b := r.p[:n]
	r.p = r.p[n:]
	return b
}

func (r *docReader) terms() docTerms {
	t := docTerms{length: int(r.number() & 0xffffffff)}
	n := r.number()
	if n > words.MaxTerms {
		r.bad = true
		return t
	}
	for range n {
		t.words = append(t.words, r.text())
	}
	r.bad = r.bad || !slices.IsSorted(t.words)
	return t
}

// There are two indexes. Who may not see what is masked searches the words
// that are left when values are masked, and nothing else: not even how often a
// masked word occurs has an influence on the answer. The index of raw words
// holds only the values whose masked form is another; the others count in both.
const (
	indexMasked = 'm'
	indexRaw    = 'r'
)
