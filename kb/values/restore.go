package values

import (
	"bytes"
	"errors"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// LastRevision is the last one that was given out.
func LastRevision(txn *badger.Txn) (uint64, error) { return db.GetNumber(txn, keyRev()) }

// Any reports whether there are values.
func Any(txn *badger.Txn) bool { return !db.IsEmpty(txn, spaceMeta) }

// A pair is a value of a backup, or a chain, taken apart.
type pair struct {
	domain, key string
	meta        meta
	value       []byte
	chain       Chain
	stored      []byte
}

// parsePair checks a pair of a backup that is of a value; nil: it is of
// something else. It trusts nothing.
func parsePair(codec *audit.Codec, key, stored []byte) (*pair, error) {
	if len(key) == 0 || key[0] != SpaceData && key[0] != SpaceChain {
		return nil, nil
	}
	domain, name, ok := db.SplitNamed(key)
	if !ok || !ValidDomain(domain) {
		return nil, wire.Invalidf("a value in no domain")
	}
	if err := checkKey(string(name)); err != nil {
		return nil, err
	}
	r := &pair{domain: domain, key: string(name), stored: stored}
	if key[0] == SpaceChain {
		return r, r.parseChain(codec)
	}
	return r, r.parseValue(codec)
}

// isValuePair reports whether a pair of a backup is a value's, and an error if it is
// not as it should be.
func IsPair(codec *audit.Codec, key, stored []byte) (bool, error) {
	r, err := parsePair(codec, key, stored)
	return r != nil || err != nil, err
}

// RestorePair restores a value, or a chain, at revisions that are higher by shift; not
// is: the pair is of something else.
func (v *Values) RestorePair(txn *badger.Txn, shift uint64, key, stored []byte) (is bool, err error) {
	r, err := parsePair(v.codec, key, stored)
	switch {
	case err != nil || r == nil:
		return r != nil, err
	case key[0] == SpaceChain:
		return true, v.restoreChain(txn, shift, r)
	}
	return true, v.restoreValue(txn, shift, r)
}

func (r *pair) parseValue(codec *audit.Codec) error {
	revision, head, value, err := splitData(r.stored)
	if err != nil {
		return err
	}
	if err := codec.Unmarshal(head, &r.meta); err != nil {
		return wire.Invalidf("what is known of %s/%s makes no sense", r.domain, r.key)
	}
	m := &r.meta
	if m.Revision != revision || revision == 0 || revision > db.MaxNumber || m.Size != len(value) ||
		len(value) > maxValue ||
		!bytes.Equal(m.Sum, sumOf(r.domain, r.key, revision, value)) {
		return wire.Invalidf("the value of %s/%s is not the one that was stored", r.domain, r.key)
	}
	r.value = value
	return m.Origin.check()
}

func (r *pair) parseChain(codec *audit.Codec) error {
	var err error
	if r.chain, err = decodeChain(codec, r.stored); err != nil {
		return wire.Invalidf("the chain of %s/%s makes no sense", r.domain, r.key)
	}
	for _, s := range r.chain.Steps {
		if s.Revision > db.MaxNumber {
			return wire.Invalidf("the chain of %s/%s makes no sense", r.domain, r.key)
		}
		if err := s.Origin.check(); err != nil {
			return err
		}
	}
	return nil
}

func (v *Values) restoreValue(txn *badger.Txn, shift uint64, r *pair) error {
	m := r.meta
	m.Revision += shift
	m.Origin.Tenant = v.opt.Tenant
	if was, err := v.meta(txn, r.domain, r.key); err == nil {
		if was.Revision != m.Revision {
			return wire.Invalidf("%s/%s is there twice", r.domain, r.key)
		}
		return nil // the page is asked for again
	} else if wire.FailureOf(err) != wire.FailNotExist {
		return err
	}
	m.Sum = sumOf(r.domain, r.key, m.Revision, r.value)
	head, err := v.codec.Marshal(m)
	if err != nil {
		return err
	}
	last, err := db.GetNumber(txn, keyRev())
	if err == nil && m.Revision > last {
		err = txn.Set(keyRev(), db.Number(nil, m.Revision))
	}
	if err != nil {
		return err
	}
	t, err := readTally(txn, r.domain)
	if err != nil {
		return err
	}
	d, err := v.document(r.domain, r.value)
	if err != nil {
		return err
	}
	t.add(d, len(r.value))
	return errors.Join(
		txn.Set(keyMeta(r.domain, r.key), head),
		txn.Set(keyData(r.domain, r.key), joinData(m.Revision, head, r.value, d.plain, m.Origin.Label == Trusted)),
		txn.Set(keyTally(r.domain), t.encode()),
		v.addDoc(txn, r.domain, r.key, m.Revision, d),
	)
}

func (v *Values) restoreChain(txn *badger.Txn, shift uint64, r *pair) error {
	most := uint64(0)
	for i := range r.chain.Steps {
		r.chain.Steps[i].Revision += shift
		most = max(most, r.chain.Steps[i].Revision)
	}
	p, err := encodeChain(v.codec, r.chain)
	if err != nil {
		return err
	}
	last, err := db.GetNumber(txn, keyRev())
	if err == nil && most > last {
		err = txn.Set(keyRev(), db.Number(nil, most))
	}
	return errors.Join(err, txn.Set(keyChain(r.domain, r.key), p))
}
