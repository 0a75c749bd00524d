package kbtest

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"runloop.dev/rlp/kb"
)

// A Memory is a [KB] that holds the built-in domains for as long as it lives.
type Memory struct {
	origin kb.Origin
	mu     sync.Mutex
	rev    uint64
	values map[[2]string]kb.Value
}

// NewMemory returns an empty Memory that writes as origin, at the time and for
// the tenant that origin has.
func NewMemory(origin kb.Origin) *Memory {
	return &Memory{origin: origin, values: map[[2]string]kb.Value{}}
}

// Get returns the value at key.
func (m *Memory) Get(_ context.Context, domain, key string) (kb.Value, error) {
	if err := check(domain, key, 0); err != nil {
		return kb.Value{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.values[[2]string{domain, key}]
	if !ok {
		return kb.Value{}, fmt.Errorf("%s/%s: %w", domain, key, fs.ErrNotExist)
	}
	v.Bytes = append([]byte{}, v.Bytes...)
	return v, nil
}

// Put stores value at key.
func (m *Memory) Put(_ context.Context, domain, key string, value []byte) (uint64, error) {
	return m.put(domain, key, value, func(uint64) bool { return true })
}

// CAS stores value at key if the stored revision is revision.
func (m *Memory) CAS(_ context.Context, domain, key string, value []byte, revision uint64) (uint64, error) {
	return m.put(domain, key, value, func(is uint64) bool { return is == revision })
}

func (m *Memory) put(domain, key string, value []byte, ok func(is uint64) bool) (uint64, error) {
	if err := check(domain, key, len(value)); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := [2]string{domain, key}
	if !ok(m.values[at].Revision) {
		return 0, kb.ErrConflict
	}
	m.rev++
	m.values[at] = kb.Value{Bytes: slices.Clone(value), Revision: m.rev, Origin: m.origin}
	return m.rev, nil
}

// Delete removes the value at key.
func (m *Memory) Delete(_ context.Context, domain, key string) error {
	if err := check(domain, key, 0); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := [2]string{domain, key}
	if _, ok := m.values[at]; !ok {
		return fmt.Errorf("%s/%s: %w", domain, key, fs.ErrNotExist)
	}
	m.rev++
	delete(m.values, at)
	return nil
}

// List returns the entries whose keys begin with prefix.
func (m *Memory) List(_ context.Context, domain, prefix string) iter.Seq2[kb.Entry, error] {
	return func(yield func(kb.Entry, error) bool) {
		if err := check(domain, "any", 0); err != nil {
			yield(kb.Entry{}, err)
			return
		}
		m.mu.Lock()
		var entries []kb.Entry
		for at, v := range m.values {
			if at[0] == domain && strings.HasPrefix(at[1], prefix) {
				entries = append(entries, kb.Entry{Key: at[1], Revision: v.Revision, Size: len(v.Bytes), Origin: v.Origin})
			}
		}
		m.mu.Unlock()
		slices.SortFunc(entries, func(a, b kb.Entry) int { return strings.Compare(a.Key, b.Key) })
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func check(domain, key string, size int) error {
	if !slices.Contains(kb.BuiltinDomains(), domain) {
		return fmt.Errorf("%w: %q", kb.ErrDomain, domain)
	}
	if key == "" || len(key) > 1<<10 || !utf8.ValidString(key) || strings.Contains(key, "\x00") {
		return fmt.Errorf("%w: the key", kb.ErrInvalid)
	}
	if size > 1<<20 {
		return fmt.Errorf("%w: a value of more than 1 MiB", kb.ErrInvalid)
	}
	return nil
}
