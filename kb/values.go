package kb

import (
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/dgraph-io/badger/v4"
)

const (
	pageBytes = 512 << 10
	pageItems = 1000
)

// checkKey refuses what cannot be a key.
func checkKey(key string) error {
	switch {
	case key == "":
		return invalidf("the key is empty")
	case len(key) > maxKey:
		return invalidf("a key of %d bytes is more than 1 KiB", len(key))
	case !utf8.ValidString(key):
		return invalidf("the key is not UTF-8")
	case strings.IndexByte(key, 0) >= 0:
		return invalidf("the key holds a NUL")
	}
	return nil
}

// meta reads the meta of a value; absent is fs.ErrNotExist.
func (e *engine) meta(txn *badger.Txn, domain, key string) (Entry, error) {
	p, err := get(txn, keyMeta(domain, key))
	if err != nil {
		return Entry{}, err
	}
	if p == nil {
		return Entry{}, fmt.Errorf("%s/%s: %w", domain, key, fs.ErrNotExist)
	}
	return e.decodeMeta(p)
}

func (e *engine) decodeMeta(p []byte) (Entry, error) {
	var m Entry
	if err := e.codec.Unmarshal(p, &m); err != nil {
		return m, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return m, nil
}

func (e *engine) get(q *request) (*response, error) {
	if err := checkKey(q.Key); err != nil {
		return nil, err
	}
	txn := e.db.NewTransaction(false)
	defer txn.Discard()
	m, err := e.meta(txn, q.Domain, q.Key)
	if err != nil {
		return nil, err
	}
	v, err := get(txn, keyData(q.Domain, q.Key))
	if err != nil {
		return nil, err
	}
	if v == nil || len(v) != m.Size {
		return nil, fmt.Errorf("%w: the value of %s/%s is not the one that was stored", ErrDamaged, q.Domain, q.Key)
	}
	return &response{Revision: m.Revision, Value: v, Origin: m.Origin}, nil
}

// list answers a page of entries whose keys have the prefix q.Key, after q.After.
func (e *engine) list(q *request) (*response, error) {
	txn := e.db.NewTransaction(false)
	defer txn.Discard()
	prefix := keyMeta(q.Domain, q.Key)
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix, PrefetchValues: true, PrefetchSize: 100})
	defer it.Close()
	from := prefix
	if q.After != "" {
		from = append(keyMeta(q.Domain, q.After), 0) // no key holds a NUL, so this is the next place
	}
	r, size, skip := &response{}, 0, len(keyMeta(q.Domain, ""))
	for it.Seek(from); it.Valid(); it.Next() {
		if len(r.Entries) >= pageItems || size > pageBytes {
			r.More = true
			break
		}
		key := string(it.Item().Key()[skip:])
		p, err := it.Item().ValueCopy(nil)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		m, err := e.decodeMeta(p)
		if err != nil {
			return nil, err
		}
		m.Key = key
		r.Entries = append(r.Entries, m)
		size += len(key) + len(p)
	}
	return r, nil
}
