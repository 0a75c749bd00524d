package values

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/dgraph-io/badger/v4"
	"github.com/zeebo/blake3"

	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

const (
	maxValue = 1 << 20
	maxKey   = 1 << 10
)

// ValidDomain reports whether a domain may have a name.
func ValidDomain(s string) bool {
	const lower = "abcdefghijklmnopqrstuvwxyz"
	return s != "" && len(s) <= 64 && strings.Trim(s[:1], lower) == "" && strings.Trim(s, lower+"0123456789_-") == "" &&
		!strings.HasSuffix(s, "_raw") // X_raw is a bit beside X
}

// checkDomain refuses what cannot be a domain. Which domains there are is said by
// the settings of who asks.
func checkDomain(domain string) error {
	if !ValidDomain(domain) {
		return fmt.Errorf("%w: %q", wire.ErrDomain, domain)
	}
	return nil
}

// checkKey refuses what cannot be a key.
func checkKey(key string) error {
	switch {
	case key == "":
		return wire.Invalidf("the key is empty")
	case len(key) > maxKey:
		return wire.Invalidf("a key of %d bytes is more than 1 KiB", len(key))
	case !utf8.ValidString(key):
		return wire.Invalidf("the key is not UTF-8")
	case strings.IndexByte(key, 0) >= 0:
		return wire.Invalidf("the key holds a NUL")
	}
	return nil
}

// A meta is what is stored of a value beside it.
type meta struct {
	Key      string `cbor:"1,keyasint"` // empty: the key of the database says it
	Revision uint64 `cbor:"2,keyasint"`
	Size     int    `cbor:"3,keyasint"`
	Origin   Origin `cbor:"4,keyasint"`
	Sum      []byte `cbor:"5,keyasint,omitempty"` // see sumOf
}

func (m *meta) entry(key string) Entry {
	if m.Origin.Label == "" {
		m.Origin.Label = Untrusted
	}
	return Entry{Key: key, Revision: m.Revision, Size: m.Size, Origin: m.Origin}
}

// sumOf is a digest of a value at its place and revision.
func sumOf(domain, key string, revision uint64, value []byte) []byte {
	h := blake3.New()
	h.Write(db.Number(keyData(domain, key), revision)) //nolint:errcheck // a hash takes everything
	h.Write(value)                                     //nolint:errcheck // the same
	return h.Sum(nil)[:16]
}

// meta reads the meta of a value; absent is fs.ErrNotExist.
func (v *Values) meta(txn *badger.Txn, domain, key string) (meta, error) {
	p, err := db.Get(txn, keyMeta(domain, key))
	if err != nil {
		return meta{}, err
	}
	if p == nil {
		return meta{}, absent(domain, key)
	}
	return v.decodeMeta(p)
}

func absent(domain, key string) error { return fmt.Errorf("%s/%s: %w", domain, key, fs.ErrNotExist) }

func (v *Values) decodeMeta(p []byte) (meta, error) {
	var m meta
	if err := v.codec.Unmarshal(p, &m); err != nil {
		return m, fmt.Errorf("%w: %w", wire.ErrDamaged, err)
	}
	return m, nil
}

// dataHead is what stands before meta and value in the stored form of a value:
// its revision and the length of the meta, below two bits. One says that masks
// change nothing of the value, and is right for the masks of the index. The
// other says that the meta's label is [Trusted], so that who reads a value need
// not decode the rest; where it is not set, the meta says what the label is.
const (
	dataHead   = 8 + 2
	plainBit   = 0x80 // of the byte behind the revision
	trustedBit = 0x40 // the same
	headBits   = (plainBit | trustedBit) << 8
)

// joinData is the stored form of a value.
func joinData(revision uint64, meta, value []byte, plain, trusted bool) []byte {
	p := make([]byte, 0, dataHead+len(meta)+len(value))
	p = db.Number(p, revision)
	p = binary.BigEndian.AppendUint16(p, uint16(len(meta)))
	if plain {
		p[8] |= plainBit
	}
	if trusted {
		p[8] |= trustedBit
	}
	return append(append(p, meta...), value...)
}

// isPlain reports whether masks change nothing of a value, of which p is the
// stored form.
func isPlain(p []byte) bool { return len(p) >= dataHead && p[8]&plainBit != 0 }

// isTrusted reports whether the label of a value is [Trusted]; p is its stored
// form and head the meta in it. Values of earlier versions have no bit for it.
func (v *Values) isTrusted(p, head []byte) (bool, error) {
	if len(p) >= dataHead && p[8]&trustedBit != 0 {
		return true, nil
	}
	m, err := v.decodeMeta(head)
	return m.Origin.Label == Trusted, err
}

// splitData takes the stored form of a value apart.
func splitData(p []byte) (revision uint64, meta, value []byte, err error) {
	if len(p) < dataHead {
		return 0, nil, nil, fmt.Errorf("%w: a value without a head", wire.ErrDamaged)
	}
	n := dataHead + int(binary.BigEndian.Uint16(p[8:])&^headBits)
	if len(p) < n {
		return 0, nil, nil, fmt.Errorf("%w: a value that is cut", wire.ErrDamaged)
	}
	return binary.BigEndian.Uint64(p), p[dataHead:n:n], p[n:], nil
}

// A getRequest asks for a value.
type getRequest struct {
	Domain string `cbor:"1,keyasint"`
	Key    string `cbor:"2,keyasint"`
	Bare   bool   `cbor:"3,keyasint,omitempty"` // without its Origin
}

// A valueAnswer is a value as it is stored.
type valueAnswer struct {
	Value    []byte `cbor:"1,keyasint,omitempty"`
	Revision uint64 `cbor:"2,keyasint"`
	Origin   Origin `cbor:"3,keyasint"`
	Plain    bool   `cbor:"4,keyasint,omitempty"` // masks change nothing of Value
	Trusted  bool   `cbor:"5,keyasint,omitempty"` // the label of Value, where Origin is not asked for
}

func (*getRequest) Op() wire.Opcode { return wire.OpGet }

func (q *getRequest) Check() error { return errors.Join(checkDomain(q.Domain), checkKey(q.Key)) }

// Do reads one key of the database; with q.Bare nothing is decoded.
func (q *getRequest) Do(_ context.Context, v *Values) (*valueAnswer, error) {
	txn := v.db.NewTransaction(false)
	defer txn.Discard()
	item, err := txn.Get(keyData(q.Domain, q.Key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, absent(q.Domain, q.Key)
	}
	r := &valueAnswer{}
	if err == nil {
		err = item.Value(func(p []byte) error { return v.answerValue(q, r, p) })
	}
	if err != nil {
		return nil, fmt.Errorf("%w: reading %s/%s: %w", wire.ErrDamaged, q.Domain, q.Key, err)
	}
	return r, nil
}

func (v *Values) answerValue(q *getRequest, r *valueAnswer, p []byte) error {
	revision, head, value, err := splitData(p)
	if err != nil {
		return err
	}
	r.Plain = isPlain(p)
	r.Revision, r.Value = revision, append(make([]byte, 0, len(value)), value...)
	if q.Bare {
		r.Trusted, err = v.isTrusted(p, head)
		return err
	}
	m, err := v.decodeMeta(head)
	if err == nil && (m.Size != len(value) || m.Revision != revision) {
		err = fmt.Errorf("%w: it is not the one that was stored", wire.ErrDamaged)
	}
	r.Origin = m.entry("").Origin
	return err
}

// A listRequest asks for a page of entries whose keys begin with Prefix.
type listRequest struct {
	Domain string `cbor:"1,keyasint"`
	Prefix string `cbor:"2,keyasint,omitempty"`
	After  string `cbor:"3,keyasint,omitempty"` // only keys behind this one
}

// A listAnswer is the page; More says that there are entries behind it.
type listAnswer struct {
	Entries []Entry `cbor:"1,keyasint,omitempty"`
	More    bool    `cbor:"2,keyasint,omitempty"`
}

func (*listRequest) Op() wire.Opcode { return wire.OpList }

func (q *listRequest) Check() error { return checkDomain(q.Domain) }

func (q *listRequest) Do(_ context.Context, v *Values) (*listAnswer, error) {
	txn := v.db.NewTransaction(false)
	defer txn.Discard()
	prefix := keyMeta(q.Domain, q.Prefix)
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix, PrefetchValues: true, PrefetchSize: 100})
	defer it.Close()
	from := prefix
	if q.After != "" {
		from = append(keyMeta(q.Domain, q.After), 0) // no key holds a NUL, so this is the next place
	}
	r, size, skip := &listAnswer{}, 0, len(keyMeta(q.Domain, ""))
	for it.Seek(from); it.Valid(); it.Next() {
		if len(r.Entries) >= db.PageItems || size > db.PageBytes {
			r.More = true
			break
		}
		key := string(it.Item().Key()[skip:])
		p, err := it.Item().ValueCopy(nil)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", wire.ErrDamaged, err)
		}
		m, err := v.decodeMeta(p)
		if err != nil {
			return nil, err
		}
		r.Entries = append(r.Entries, m.entry(key))
		size += len(key) + len(p)
	}
	return r, nil
}
