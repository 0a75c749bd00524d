package values

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/zeebo/blake3"

	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
	"runloop.dev/rlp/kb/words"
)

// indexRules is the version of how words are found; it changes whenever a
// stored index would not be the one that is made now.
const indexRules = "1"

// probe is masked to tell masks apart that follow one rule under two keys.
const probe = "Ada Lovelace <ada.lovelace@example.org>, +1 212 555 0123"

// IndexVersion names the rules by which an index is made, the masks' included.
func (o *Options) IndexVersion() string {
	version := indexRules + "/" + o.MaskVersion
	if o.Mask == nil {
		return version
	}
	sum := blake3.Sum256(o.Mask("contacts", []byte(probe)))
	return version + "/" + hex.EncodeToString(sum[:8])
}

// A document is a value made ready for the index.
type document struct {
	masked words.Terms
	raw    *words.Terms // nil: no other than masked
	plain  bool         // there are masks, and they change nothing
}

// document finds the words of a value.
func (v *Values) document(domain string, value []byte) (*document, error) {
	masked, err := v.opt.masked(domain, value)
	if err != nil {
		return nil, err
	}
	d := &document{masked: words.Of(masked), plain: v.opt.Mask != nil && string(masked) == string(value)}
	if string(masked) != string(value) {
		raw := words.Of(value)
		d.raw = &raw
	}
	return d, nil
}

// masked is a value as it is shown to who may not see it raw.
func (o *Options) masked(domain string, value []byte) ([]byte, error) {
	if o.Mask == nil || len(value) == 0 {
		return value, nil
	}
	masked := o.Mask(domain, slices.Clone(value))
	if masked == nil {
		return nil, fmt.Errorf("%w: its values cannot be masked, for the key of masks cannot be read", wire.ErrUnavailable)
	}
	return masked, nil
}

// empty reports whether there is nothing to find in d.
func (d *document) empty() bool {
	return d.masked.Length == 0 && (d.raw == nil || d.raw.Length == 0)
}

// A tally counts what a domain holds.
type tally struct {
	values, bytes  uint64
	docs, words    uint64 // with masked words
	rawDocs, rawWs uint64 // with raw words
}

// A Tally says what a domain holds.
type Tally struct {
	Domain string `cbor:"1,keyasint"`
	Values uint64 `cbor:"2,keyasint,omitempty"`
	Bytes  uint64 `cbor:"3,keyasint,omitempty"` // of the values
}

func (t *tally) encode() []byte {
	var p []byte
	for _, n := range []uint64{t.values, t.bytes, t.docs, t.words, t.rawDocs, t.rawWs} {
		p = binary.AppendUvarint(p, n)
	}
	return p
}

func readTally(txn *badger.Txn, domain string) (tally, error) {
	var t tally
	p, err := db.Get(txn, keyTally(domain))
	if err != nil || p == nil {
		return t, err
	}
	return decodeTally(p)
}

func decodeTally(p []byte) (tally, error) {
	var t tally
	r := &docReader{p: p}
	for _, n := range []*uint64{&t.values, &t.bytes, &t.docs, &t.words, &t.rawDocs, &t.rawWs} {
		*n = r.number()
	}
	if r.bad || len(r.p) > 0 {
		return t, fmt.Errorf("%w: the tally of a domain makes no sense", wire.ErrDamaged)
	}
	return t, nil
}

// count adds sign times a document with these lengths; raw < 0: as masked.
func (t *tally) count(masked, raw int, sign uint64) {
	if raw < 0 {
		raw = masked
	}
	if masked > 0 {
		t.docs += sign
		t.words += sign * uint64(masked)
	}
	if raw > 0 {
		t.rawDocs += sign
		t.rawWs += sign * uint64(raw)
	}
}

// Tallies says what each domain of the store holds, in the order of their names.
func (s *Client) Tallies(ctx context.Context) ([]Tally, error) {
	r, err := wire.Ask(ctx, s.asker, &tallyRequest{})
	if err != nil {
		return nil, err
	}
	list := make([]Tally, len(s.opt.Domains))
	for i, d := range s.opt.Domains {
		list[i].Domain = d
		for _, t := range r.Tallies {
			if t.Domain == d {
				list[i] = t
			}
		}
	}
	return list, nil
}

// A tallyRequest asks what each domain holds.
type tallyRequest struct{}

type tallyAnswer struct {
	Tallies []Tally `cbor:"1,keyasint,omitempty"`
}

func (*tallyRequest) Op() wire.Opcode { return wire.OpTally }

func (*tallyRequest) Do(_ context.Context, v *Values) (*tallyAnswer, error) {
	txn := v.db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceTally}})
	defer it.Close()
	r := &tallyAnswer{}
	for it.Rewind(); it.Valid(); it.Next() {
		domain, _, _ := db.SplitNamed(it.Item().Key())
		t, err := readTally(txn, domain)
		if err != nil {
			return nil, err
		}
		r.Tallies = append(r.Tallies, Tally{domain, t.values, t.bytes})
	}
	return r, nil
}

// add counts one more value.
func (t *tally) add(d *document, size int) {
	t.values++
	t.bytes += uint64(size)
	raw := -1
	if d.raw != nil {
		raw = d.raw.Length
	}
	t.count(d.masked.Length, raw, 1)
}

// addDoc enters a value's words into the index as document doc.
func (v *Values) addDoc(txn *badger.Txn, domain, key string, doc uint64, d *document) error {
	if d.empty() {
		return nil
	}
	rec := docRecord{key: key, masked: docOf(&d.masked)}
	if d.raw != nil {
		raw := docOf(d.raw)
		rec.raw = &raw
	}
	err := txn.Set(keyDoc(domain, doc), rec.encode())
	for _, w := range d.masked.List {
		p := posting{doc, uint64(w.N), uint64(d.masked.Length), d.raw != nil}
		err = errors.Join(err, changeChunk(txn, keyChunk(domain, indexMasked, w.Text, doc), p, true))
	}
	if d.raw == nil {
		return err
	}
	for _, w := range d.raw.List {
		p := posting{doc, uint64(w.N), uint64(d.raw.Length), false}
		err = errors.Join(err, changeChunk(txn, keyChunk(domain, indexRaw, w.Text, doc), p, true))
	}
	return err
}

// removeDoc takes a document out of the index and returns the lengths that it
// was counted with.
func (v *Values) removeDoc(txn *badger.Txn, domain string, doc uint64) (masked, raw int, err error) {
	p, err := db.Get(txn, keyDoc(domain, doc))
	if err != nil || p == nil {
		return 0, -1, err
	}
	d, err := decodeDoc(p)
	if err != nil {
		return 0, -1, err
	}
	err = txn.Delete(keyDoc(domain, doc))
	for _, w := range d.masked.words {
		err = errors.Join(err, changeChunk(txn, keyChunk(domain, indexMasked, w, doc), posting{doc: doc}, false))
	}
	if d.raw == nil {
		return d.masked.length, -1, err
	}
	for _, w := range d.raw.words {
		err = errors.Join(err, changeChunk(txn, keyChunk(domain, indexRaw, w, doc), posting{doc: doc}, false))
	}
	return d.masked.length, d.raw.length, err
}

// changeChunk puts a posting into a chunk, or takes it out.
func changeChunk(txn *badger.Txn, key []byte, p posting, add bool) error {
	before, err := db.Get(txn, key)
	if err != nil {
		return err
	}
	list, err := readChunk(make([]posting, 0, chunkDocs), p.doc>>chunkBits, before)
	if err != nil {
		return err
	}
	after := make([]byte, 0, len(before)+8)
	for _, q := range list {
		if add && q.doc > p.doc {
			after, add = appendPosting(after, p), false
		}
		if q.doc != p.doc {
			after = appendPosting(after, q)
		}
	}
	if add {
		after = appendPosting(after, p)
	}
	if len(after) == 0 {
		return txn.Delete(key)
	}
	return txn.Set(key, after)
}
