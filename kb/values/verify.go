package values

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
	"runloop.dev/rlp/kb/words"
)

// A Verified says what [Client.Verify] has looked at.
type Verified struct {
	Values   int `cbor:"1,keyasint,omitempty"`
	Bytes    int `cbor:"2,keyasint,omitempty"`
	Postings int `cbor:"3,keyasint,omitempty"` // entries of both indexes
}

// Verify checks each value against the digest that was stored with it, both
// indexes against the values and the values against both indexes, while the
// store is in use. The error is [wire.ErrDamaged] and names the first key, or place
// of an index, that is not as it should be.
func (s *Client) Verify(ctx context.Context) (Verified, error) {
	var all Verified
	q := &verifyRequest{}
	for {
		r, err := wire.Ask(ctx, s.asker, q)
		if err != nil {
			return all, fmt.Errorf("verifying the store: %w", err)
		}
		all.Values += r.Verified.Values
		all.Bytes += r.Verified.Bytes
		all.Postings += r.Verified.Postings
		if len(r.Next) == 0 {
			return all, nil
		}
		q.From = r.Next
	}
}

// A verifier checks a stretch of the database within one transaction: each
// check compares things that change together.
type verifier struct {
	*Values
	txn  *badger.Txn
	done Verified
}

// A verifyRequest asks for a step of what [Client.Verify] does, which takes db.VerifyStep.
type verifyRequest struct {
	From []byte `cbor:"1,keyasint,omitempty"` // the key where it begins; empty: the first
}

type verifyAnswer struct {
	Verified Verified `cbor:"1,keyasint"`
	Next     []byte   `cbor:"2,keyasint,omitempty"` // where to go on; empty: it was the last step
}

func (*verifyRequest) Op() wire.Opcode { return wire.OpVerify }

func (q *verifyRequest) Do(ctx context.Context, v *Values) (*verifyAnswer, error) {
	w := &verifier{Values: v, txn: v.db.NewTransaction(false)}
	defer w.txn.Discard()
	until := time.Now().Add(db.VerifyStep)
	from := q.From
	for _, space := range Spaces {
		if len(from) > 0 && from[0] != space {
			continue
		}
		next, err := w.walk(ctx, space, from, until)
		if err != nil {
			return nil, err
		}
		if next != nil {
			return &verifyAnswer{w.done, next}, nil
		}
		from = nil
	}
	return &verifyAnswer{Verified: w.done}, nil
}

// walk checks a space from a key on and returns where time ended it, or nil.
func (v *verifier) walk(ctx context.Context, space byte, from []byte, until time.Time) ([]byte, error) {
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{space}})
	defer it.Close()
	for it.Seek(append([]byte{space}, from[min(1, len(from)):]...)); it.Valid(); it.Next() {
		key := it.Item().KeyCopy(nil)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if time.Now().After(until) {
			return key, nil
		}
		p, err := it.Item().ValueCopy(nil)
		if err == nil {
			err = v.check(key, p)
		}
		if err != nil && !errors.Is(err, wire.ErrDamaged) && !errors.Is(err, wire.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", wire.ErrDamaged, err)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (v *verifier) check(k, p []byte) error {
	domain, rest, ok := db.SplitNamed(k)
	if !ok {
		return fmt.Errorf("%w: a key without a domain: %x", wire.ErrDamaged, k)
	}
	at := domain + "/" + string(rest)
	var err error
	switch k[0] {
	case spaceMeta:
		err = v.checkMeta(domain, string(rest), p)
	case SpaceData:
		err = v.checkData(domain, string(rest), p)
	case SpaceChain:
		err = v.checkChain(domain, string(rest), p)
	case spaceDoc:
		at = fmt.Sprintf("document %d of %s", db.TailNumber(k), domain)
		err = v.checkDoc(domain, db.TailNumber(k), p)
	case spaceIndex:
		at = fmt.Sprintf("the index of %s", domain)
		err = v.checkChunk(domain, rest, p)
	case spaceTally:
		at = "the tally of " + domain
		err = v.checkTally(domain, p)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// checkMeta: the meta beside a value is the one within it.
func (v *verifier) checkMeta(domain, key string, p []byte) error {
	stored, err := db.Get(v.txn, keyData(domain, key))
	if err != nil {
		return err
	}
	if stored == nil {
		return wire.Damagedf("its value is missing")
	}
	for what, k := range map[string][]byte{
		"its chain":               keyChain(domain, key),
		"the tally of its domain": keyTally(domain),
	} {
		if p, err := db.Get(v.txn, k); err != nil || p == nil {
			return errors.Join(err, wire.Damagedf("%s is missing", what))
		}
	}
	_, m, _, err := splitData(stored)
	if err == nil && !bytes.Equal(m, p) {
		err = wire.Damagedf("what is known of it differs from place to place")
	}
	return err
}

// checkData: a value is the one that was stored, and its words are in the index.
func (v *verifier) checkData(domain, key string, p []byte) error {
	revision, head, value, err := splitData(p)
	if err != nil {
		return err
	}
	m, err := v.decodeMeta(head)
	if err != nil {
		return err
	}
	if m.Revision != revision || m.Size != len(value) || !bytes.Equal(m.Sum, sumOf(domain, key, revision, value)) {
		return wire.Damagedf("the value is not the one that was stored")
	}
	if there, err := db.Get(v.txn, keyMeta(domain, key)); err != nil || there == nil {
		return errors.Join(err, wire.Damagedf("what is known of it is missing"))
	}
	v.done.Values++
	v.done.Bytes += len(value)
	d, err := v.document(domain, value)
	if err != nil {
		return err
	}
	if isPlain(p) != d.plain {
		return wire.Damagedf("what is said of its masks is not so")
	}
	if trusted, err := v.isTrusted(p, head); err != nil || trusted && m.Origin.Label != Trusted {
		return errors.Join(err, wire.Damagedf("it is called trusted and its label is %s", m.entry("").Origin.Label))
	}
	return v.checkWords(domain, key, revision, d)
}

func (v *verifier) checkWords(domain, key string, doc uint64, d *document) error {
	stored, err := db.Get(v.txn, keyDoc(domain, doc))
	if err != nil {
		return err
	}
	if d.empty() {
		if stored != nil {
			return wire.Damagedf("it has no words, and the index has some")
		}
		return nil
	}
	want := docRecord{key: key, masked: docOf(&d.masked)}
	if d.raw != nil {
		raw := docOf(d.raw)
		want.raw = &raw
	}
	if !bytes.Equal(stored, want.encode()) {
		return wire.Damagedf("the index has other words of it")
	}
	err = v.checkPostings(domain, indexMasked, doc, d.masked, d.raw != nil)
	if err == nil && d.raw != nil {
		err = v.checkPostings(domain, indexRaw, doc, *d.raw, false)
	}
	return err
}

// checkPostings: each word of a document leads to it.
func (v *verifier) checkPostings(domain string, index byte, doc uint64, t words.Terms, differs bool) error {
	for _, w := range t.List {
		p, err := db.Get(v.txn, keyChunk(domain, index, w.Text, doc))
		if err != nil {
			return err
		}
		list, err := readChunk(nil, doc>>chunkBits, p)
		if err != nil {
			return err
		}
		if !slices.Contains(list, posting{doc, uint64(w.N), uint64(t.Length), differs}) {
			return wire.Damagedf("the index does not lead to it by one of its words")
		}
	}
	return nil
}

// checkChain: the last step of a chain is the value that is there.
func (v *verifier) checkChain(domain, key string, p []byte) error {
	c, err := decodeChain(v.codec, p)
	if err != nil {
		return err
	}
	last := c.Steps[len(c.Steps)-1]
	m, err := v.meta(v.txn, domain, key)
	switch {
	case err != nil && wire.FailureOf(err) != wire.FailNotExist:
		return err
	case (err != nil) != last.Deleted, err == nil && m.Revision != last.Revision:
		return wire.Damagedf("its chain ends in another revision")
	}
	return nil
}

// checkDoc: a document of the index is a value that is there.
func (v *verifier) checkDoc(domain string, doc uint64, p []byte) error {
	d, err := decodeDoc(p)
	if err != nil {
		return err
	}
	m, err := v.meta(v.txn, domain, d.key)
	if err != nil || m.Revision != doc {
		return wire.Damagedf("it is not the value at %s", d.key)
	}
	return nil
}

// checkChunk: each document that a word leads to has that word.
func (v *verifier) checkChunk(domain string, rest, p []byte) error {
	if len(rest) < 2+8 || len(rest) != 2+int(rest[1])+8 || rest[0] != indexMasked && rest[0] != indexRaw {
		return wire.Damagedf("a key makes no sense")
	}
	word := string(rest[2 : 2+rest[1]])
	list, err := readChunk(nil, db.TailNumber(rest), p)
	if err != nil {
		return err
	}
	for _, q := range list {
		item, err := v.txn.Get(keyDoc(domain, q.doc))
		if errors.Is(err, badger.ErrKeyNotFound) {
			return wire.Damagedf("a word leads to document %d, which is not there", q.doc)
		}
		if err == nil {
			err = item.Value(func(p []byte) error { return hasWord(p, rest[0], word) })
		}
		if err != nil {
			return err
		}
		v.done.Postings++
	}
	return nil
}

// checkTally: what a domain is said to hold is what it holds.
func (v *verifier) checkTally(domain string, p []byte) error {
	have, err := decodeTally(p)
	if err != nil {
		return err
	}
	var want tally
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: db.Named(spaceMeta, domain)})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		var m meta
		err := it.Item().Value(func(p []byte) (err error) {
			m, err = v.decodeMeta(p)
			return err
		})
		if err != nil {
			return err
		}
		want.values++
		want.bytes += uint64(m.Size)
	}
	if err := v.countDocs(domain, &want); err != nil {
		return err
	}
	if have != want {
		return wire.Damagedf("it counts %d values and %d words, there are %d and %d", have.values, have.words, want.values,
			want.words)
	}
	return nil
}

func (v *verifier) countDocs(domain string, t *tally) error {
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: db.Named(spaceDoc, domain)})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		err := it.Item().Value(func(p []byte) error {
			masked, raw, err := docLengths(p)
			t.count(masked, raw, 1)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
