package values

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"runloop.dev/rlp/kb/wire"
)

// A View is the knowledge base as one run, or one operator, uses it: what it
// writes carries its [Origin].
type View struct {
	*Client
	origin Origin
}

// View returns the store's values as o reads and writes them.
func (s *Client) View(o Origin) *View { return &View{s, o} }

// Get returns the value at key. It is [fs.ErrNotExist] when there is none and
// [wire.ErrDomain] when there is no such domain.
func (v *View) Get(ctx context.Context, domain, key string) (Value, error) {
	if err := v.checkDomain(domain); err != nil {
		return Value{}, err
	}
	r, err := wire.Ask(ctx, v.asker, &getRequest{Domain: domain, Key: key})
	if err != nil {
		return Value{}, err
	}
	if r.Value == nil {
		r.Value = []byte{}
	}
	return Value{r.Value, r.Revision, r.Origin}, nil
}

// Content is [View.Get] without the rest of the provenance, and quicker.
func (v *View) Content(ctx context.Context, domain, key string) (Content, error) {
	if err := v.checkDomain(domain); err != nil {
		return Content{}, err
	}
	if here, ok := v.asker.Hold(); ok {
		defer v.asker.Release()
		return here.content(domain, key)
	}
	r, err := wire.Ask(ctx, v.asker, &getRequest{Domain: domain, Key: key, Bare: true})
	if err != nil {
		return Content{}, err
	}
	if r.Value == nil {
		r.Value = []byte{}
	}
	return Content{r.Value, r.Plain, r.Trusted}, nil
}

// Put stores value at key, at most 1 MiB at a key of at most 1 KiB of UTF-8
// without NUL, and returns its revision. A revision is never given out twice.
// The value is durable when Put returns.
func (v *View) Put(ctx context.Context, domain, key string, value []byte) (uint64, error) {
	return v.change(ctx, &changeRequest{Domain: domain, Key: key, Value: value})
}

// CAS is Put if the stored revision is revision, 0 meaning that there is none,
// and [wire.ErrConflict] otherwise.
func (v *View) CAS(ctx context.Context, domain, key string, value []byte, revision uint64) (uint64, error) {
	return v.change(ctx, &changeRequest{Domain: domain, Key: key, Value: value, Compare: true, Revision: revision})
}

// Delete removes the value at key. It is [fs.ErrNotExist] when there is none.
func (v *View) Delete(ctx context.Context, domain, key string) error {
	_, err := v.change(ctx, &changeRequest{Domain: domain, Key: key, Delete: true})
	return err
}

// checkDomain refuses a domain that the settings do not name.
func (v *View) checkDomain(domain string) error {
	if !slices.Contains(v.opt.Domains, domain) {
		return fmt.Errorf("%w: %q is none of %s", wire.ErrDomain, domain, strings.Join(v.opt.Domains, ", "))
	}
	return nil
}

func (v *View) change(ctx context.Context, q *changeRequest) (uint64, error) {
	if err := v.checkDomain(q.Domain); err != nil {
		return 0, err
	}
	if err := checkKey(q.Key); err != nil {
		return 0, err
	}
	if len(q.Value) > maxValue {
		return 0, wire.Invalidf("a value of %d bytes is more than 1 MiB", len(q.Value))
	}
	q.Origin = v.origin
	r, err := wire.Ask(ctx, v.asker, q)
	if err != nil {
		return 0, err
	}
	return r.Revision, nil
}

// List returns the entries whose keys begin with prefix, in the order of their
// bytes. It ends after the first error.
func (v *View) List(ctx context.Context, domain, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := v.checkDomain(domain); err != nil {
			yield(Entry{}, err)
			return
		}
		q := &listRequest{Domain: domain, Prefix: prefix}
		for {
			r, err := wire.Ask(ctx, v.asker, q)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range r.Entries {
				if !yield(e, nil) {
					return
				}
			}
			if !r.More || len(r.Entries) == 0 {
				return
			}
			q.After = r.Entries[len(r.Entries)-1].Key
		}
	}
}
