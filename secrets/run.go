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

	"runloop.dev/rlp/caps"
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
	above    []secretValue // of the runs above this one
	bound    []string      // id@host, or id, that the policy of this run has
	over     []string      // the same of the runs above
	sent     *sentList     // nil: nobody remembers
	settled  map[string][]string
	looked   map[string]bool
}

// kept is a secret whose value was fetched.
type kept struct {
	id     string
	handle string // "" until one was asked for
	value  []byte
	hidden bool // the run itself has nothing to do with it: its id is not for the guest
}

// NewRun makes the secrets of a run. open is called at the first use.
func NewRun(open func() (Provider, error)) *Run {
	return &Run{open: open, byID: map[ID]*kept{}, byHandle: map[string]*kept{}, looked: map[string]bool{}}
}

// Binds tells r what its policy has: an id, or id@host, each. Runs that it launches
// look for these, too, in what such a host says. It is called before r is used.
func (r *Run) Binds(list []string) { r.bound = list }

// Under makes r the run that another one launched: what that one knows, and those
// above it, is looked for here as well, and what their policies bind to a host
// when it answers. It is called before r is used.
func (r *Run) Under(up *Run) {
	up.mu.Lock()
	defer up.mu.Unlock()
	for _, v := range up.values() {
		r.above = append(r.above, secretValue{id: v.id, value: slices.Clone(v.value), hidden: true})
	}
	r.over = slices.Concat(up.over, up.bound)
	r.learn()
}

// Remember has r note in dir, the tenant's, which secrets it sends to which hosts,
// and look there for what others sent; settled are those that the configuration
// sends, by host. It is called before r is used.
func (r *Run) Remember(dir string, settled map[string][]string) {
	r.sent, r.settled = &sentList{dir: dir}, settled
}

// Sending notes that the value of the secret id is about to be sent to host: what
// is not noted must not be sent.
func (r *Run) Sending(id, host string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent == nil {
		return nil
	}
	return r.sent.add(id, host)
}

// Hear is told of a host that has answered, before anybody looks at what it says:
// the values of ids, which may be sent there, of those that a run above may send there,
// and of every secret that any run of the tenant has sent there, are looked for from
// now on. What cannot be fetched
// is told once.
func (r *Run) Hear(ctx context.Context, host string, ids []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var theirs []string
	var err error
	if r.sent != nil {
		theirs, err = r.sent.at(host)
	}
	errs := []error{r.once("the list", err)}
	for _, id := range ids {
		errs = append(errs, r.look(ctx, id, false))
	}
	for to, settled := range r.settled {
		if place(to) == place(host) {
			theirs = append(theirs, settled...)
		}
	}
	for _, scope := range r.over {
		if id, to, _ := strings.Cut(scope, "@"); caps.BoundTo(to, host) || place(to) == place(host) {
			theirs = append(theirs, id)
		}
	}
	for _, id := range theirs {
		errs = append(errs, r.look(ctx, id, true))
	}
	return errors.Join(errs...)
}

func (r *Run) look(ctx context.Context, id string, hidden bool) error {
	if r.looked[id] || r.closed {
		return nil
	}
	r.looked[id] = true
	_, err := r.fetch(ctx, id, hidden)
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return nil
	case ctx.Err() != nil:
		delete(r.looked, id) // the call was over before the value was there
		return err
	}
	return r.once(err.Error(), err)
}

// once is err, unless it was told.
func (r *Run) once(what string, err error) error {
	if err == nil || r.looked["error "+what] {
		return nil
	}
	r.looked["error "+what] = true
	return err
}

// Knows reports whether there is any value that is looked for: lengths of what
// holds one tell its own.
func (r *Run) Knows() bool { return r.matcher.Load() != nil }

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
	k, err := r.fetch(ctx, id, false)
	if err != nil {
		return "", err
	}
	if k.handle == "" {
		var random [handleRandom * 5 / 8]byte
		_, _ = rand.Read(random[:]) // never fails: the program ends if it would
		k.handle = handlePrefix + strings.ToLower(base32.StdEncoding.EncodeToString(random[:]))
		r.byHandle[k.handle] = k
	}
	if k.hidden {
		k.hidden = false
		r.learn()
	}
	return k.handle, nil
}

// Reveal is the value of the secret id, for the host's own use in this run. It
// is taken out of texts like those that the run has handles of.
func (r *Run) Reveal(ctx context.Context, id string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, err := r.fetch(ctx, id, false)
	if err != nil {
		return "", err
	}
	return string(k.value), nil
}

// fetch is what is kept of a secret; hidden is of what it is when it is new.
func (r *Run) fetch(ctx context.Context, text string, hidden bool) (*kept, error) {
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
	k := &kept{id: text, value: value, hidden: hidden}
	r.byID[id] = k
	r.learn()
	return k, nil
}

func (r *Run) learn() {
	r.matcher.Store(newMatcher(r.values()))
}

// values are all that are looked for; the run's own come last, whose marks count
// where a value is of several.
func (r *Run) values() []secretValue {
	values := slices.Clone(r.above)
	for _, hidden := range []bool{true, false} {
		for _, k := range r.byID {
			if k.hidden == hidden {
				values = append(values, secretValue{k.id, k.value, hidden})
			}
		}
	}
	return values
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
	if m == nil {
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
	for _, v := range r.above {
		clear(v.value)
	}
	r.above = nil
	clear(r.byID)
	clear(r.byHandle)
	r.closed, r.scanner = true, nil
	r.matcher.Store(nil)
}
