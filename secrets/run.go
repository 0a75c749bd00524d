package secrets

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A Run is the secrets of one run. It fetches a value when a handle is asked
// for and at no other time, and knows it until [Run.Close].
type Run struct {
	open    func() (Provider, error)
	matcher atomic.Pointer[matcher] // of all values fetched; nil: none yet

	mu       sync.Mutex
	provider Provider
	byID     map[ID]*kept
	byHandle map[string]*kept
	scanner  *scanner // for whole texts, one after the other
	closed   bool
}

// kept is a secret whose value was fetched.
type kept struct {
	id     string
	handle string // "" until one was asked for
	value  []byte
}

// NewRun makes the secrets of a run. open is called at the first use.
func NewRun(open func() (Provider, error)) *Run {
	return &Run{open: open, byID: map[ID]*kept{}, byHandle: map[string]*kept{}}
}

// Handles begin with handlePrefix and end with handleRandom letters of base32:
// nothing that any encoding of text would change.
const (
	handlePrefix = "rlsec_"
	handleRandom = 32
)

// Handle is the name of the secret id in this run: always the same, and not to
// be guessed. It wraps [fs.ErrNotExist] when there is no such secret, and
// errors.ErrUnsupported when the provider is not available.
func (r *Run) Handle(ctx context.Context, id string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, err := r.fetch(ctx, id)
	if err != nil {
		return "", err
	}
	if k.handle == "" {
		var random [handleRandom * 5 / 8]byte
		_, _ = rand.Read(random[:]) // never fails: the program ends if it would
		k.handle = handlePrefix + strings.ToLower(base32.StdEncoding.EncodeToString(random[:]))
		r.byHandle[k.handle] = k
	}
	return k.handle, nil
}

// Reveal is the value of the secret id, for the host's own use in this run. It
// is taken out of texts like those that the run has handles of.
func (r *Run) Reveal(ctx context.Context, id string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, err := r.fetch(ctx, id)
	if err != nil {
		return "", err
	}
	return string(k.value), nil
}

func (r *Run) fetch(ctx context.Context, text string) (*kept, error) {
	id, err := ParseID(text)
	if err != nil {
		return nil, err
	}
	if k := r.byID[id]; k != nil {
		return k, nil
	}
	if r.closed {
		return nil, errors.New("fetching a secret: the run has ended")
	}
	if r.provider == nil {
		if r.provider, err = r.open(); err != nil {
			return nil, err
		}
	}
	value, err := r.provider.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := CheckValue(value); err != nil {
		clear(value)
		return nil, fmt.Errorf("the secret %s cannot be used: %w", id, err)
	}
	k := &kept{id: text, value: value}
	r.byID[id] = k
	r.learn()
	return k, nil
}

// learn makes the matcher of all values.
func (r *Run) learn() {
	var values []secretValue
	for _, k := range r.byID {
		values = append(values, secretValue{k.id, k.value})
	}
	r.scanner = nil
	r.matcher.Store(newMatcher(values))
}

// Named are the words of text that begin like handles, each once.
func (r *Run) Named(text string) []string {
	var words []string
	for {
		_, rest, found := strings.Cut(text, handlePrefix)
		if !found {
			return words
		}
		n := min(handleRandom, len(rest))
		if word := handlePrefix + rest[:n]; !slices.Contains(words, word) {
			words = append(words, word)
		}
		text = rest
	}
}

// Fill puts values in the place of the handles in text, each after admit has
// permitted its id. What begins like a handle and is none of this run's is an
// error that wraps [fs.ErrNotExist].
func (r *Run) Fill(text string, admit func(id string) error) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, handlePrefix)
		if !found {
			break
		}
		r.mu.Lock()
		k := r.byHandle[handlePrefix+rest[:min(handleRandom, len(rest))]]
		r.mu.Unlock()
		if k == nil {
			return "", fmt.Errorf("a handle that is none of this run's: %w", fs.ErrNotExist)
		}
		if err := admit(k.id); err != nil {
			return "", err
		}
		b.WriteString(before)
		b.Write(k.value)
		text = rest[handleRandom:]
	}
	if b.Len() == 0 {
		return text, nil
	}
	b.WriteString(text)
	return b.String(), nil
}

// Scrub returns p with a mark in the place of each value that was fetched in
// this run, however it is written, and p itself when there is none. Each secret
// found is told to replaced.
func (r *Run) Scrub(p []byte, replaced func(id string)) []byte {
	m := r.matcher.Load()
	if m == nil || len(p) == 0 {
		return p
	}
	r.mu.Lock()
	if r.scanner == nil || r.scanner.m != m {
		r.scanner = newScanner(m)
	}
	out := r.scanner.scrub(p)
	ids := r.scanner.owners()
	r.mu.Unlock()
	for _, id := range ids {
		replaced(id)
	}
	return out
}

// Stream is [Run.Scrub] for a text that comes in pieces: the function that it
// returns gives what can be passed on, and everything when end is set. It is
// used by one goroutine at a time; what it returns is valid until the next call.
func (r *Run) Stream(replaced func(id string)) func(p []byte, end bool) []byte {
	var t *stream
	return func(p []byte, end bool) []byte {
		m := r.matcher.Load()
		if m == nil {
			return p
		}
		if t == nil {
			t = &stream{s: newScanner(m)}
		}
		if t.s.m != m { // a value more: what is held is read again
			t.s = newScanner(m)
			t.s.restart(t.base)
			t.s.scan(t.held)
		}
		out := t.write(p, end)
		for _, id := range t.s.owners() {
			replaced(id)
		}
		return out
	}
}

// Close forgets the values. What was made of them meanwhile, such as a header
// that was sent, is out of its reach.
func (r *Run) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.byID {
		clear(k.value)
	}
	clear(r.byID)
	clear(r.byHandle)
	r.closed, r.scanner = true, nil
	r.matcher.Store(nil)
}
