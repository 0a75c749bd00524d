package knowledge

import (
	"context"
	"encoding/base64"
	"slices"
	"time"
	"unicode/utf8"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

// An Origin is where a value comes from.
type Origin struct {
	Agent  string `json:"agent,omitempty"`
	Run    string `json:"run_id,omitempty"`
	Tenant string `json:"tenant_id"`
	Source string `json:"source,omitempty"`
	Label  string `json:"label"`
	ETag   string `json:"etag,omitempty"`
	Time   string `json:"time"`
}

func originOf(o kb.Origin) Origin {
	return Origin{o.Agent, o.Run, o.Tenant, o.Source, o.Label, o.ETag, stamp(o.UnixMS)}
}

// stamp is a time as documents have it.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// Who is an origin in one line.
func (o Origin) Who() string {
	text := o.Label
	for _, w := range []struct{ word, of string }{{"agent", o.Agent}, {"run", o.Run}, {"source", o.Source}} {
		if w.of != "" && !(w.word == "source" && w.of == "agent") {
			text += "  " + w.word + " " + w.of
		}
	}
	return text
}

// A Domain is one of the closed list, and what it holds.
type Domain struct {
	Name    string `json:"name"`
	Builtin bool   `json:"builtin"`
	Values  uint64 `json:"values"`
	Bytes   uint64 `json:"bytes"`
}

// Domains are all there are.
func (s *Session) Domains(ctx context.Context) ([]Domain, error) {
	tallies, err := s.Tallies(ctx)
	list := []Domain{}
	for _, t := range tallies {
		list = append(list, Domain{t.Domain, slices.Contains(kb.BuiltinDomains(), t.Domain), t.Values, t.Bytes})
	}
	return list, err
}

// A Value is what is stored under a key.
type Value struct {
	Domain   string  `json:"domain"`
	Key      string  `json:"key"`
	Revision uint64  `json:"revision"`
	Size     int     `json:"size"`
	Masked   bool    `json:"masked"`
	Value    *string `json:"value,omitempty"`
	Base64   string  `json:"value_base64,omitempty"`
	Origin   Origin  `json:"origin"`
	Bytes    []byte  `json:"-"`
}

// Get is what is stored under a key, masked unless it is raw.
func (s *Session) Get(ctx context.Context, domain, key string, raw bool) (*Value, error) {
	v, err := s.view.Get(ctx, domain, key)
	if err != nil {
		return nil, absentIn(err, domain, key)
	}
	if !raw {
		if v.Bytes, err = s.masks.Mask(domain, v.Bytes); err != nil {
			return nil, err
		}
	}
	d := &Value{
		Domain: domain, Key: key, Revision: v.Revision, Size: len(v.Bytes), Masked: !raw, Origin: originOf(v.Origin),
		Bytes: v.Bytes,
	}
	if utf8.Valid(v.Bytes) {
		text := string(v.Bytes)
		d.Value = &text
	} else {
		d.Base64 = base64.StdEncoding.EncodeToString(v.Bytes)
	}
	return d, nil
}

// Put stores a value. expected is the revision that is stored; nil: any.
func (s *Session) Put(ctx context.Context, domain, key string, value []byte, expected *uint64) (uint64, error) {
	if expected != nil {
		return s.view.CAS(ctx, domain, key, value, *expected)
	}
	return s.view.Put(ctx, domain, key, value)
}

// Delete deletes a value; who wrote it stays known.
func (s *Session) Delete(ctx context.Context, domain, key string) error {
	return absentIn(s.view.Delete(ctx, domain, key), domain, key)
}

// An Entry is a key as it is listed.
type Entry struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
	Size     int    `json:"size"`
	Origin   Origin `json:"origin"`
}

// List are the keys that begin with a prefix, masked unless they are raw.
func (s *Session) List(ctx context.Context, domain, prefix string, raw bool) ([]Entry, error) {
	list := []Entry{}
	for e, err := range s.view.List(ctx, domain, prefix) {
		if err == nil && !raw {
			e.Key, err = s.masks.MaskKey(domain, e.Key)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, Entry{e.Key, e.Revision, e.Size, originOf(e.Origin)})
	}
	return list, nil
}

// Search is what suits a text best.
func Search(ctx context.Context, r *compose.Reader, q kb.Query) ([]ask.Hit, error) {
	list := []ask.Hit{}
	err := With(ctx, r, kb.Origin{}, func(s *Session) error {
		hits, err := s.view.Search(ctx, q)
		for _, h := range hits {
			if err != nil {
				break
			}
			if !q.Raw {
				h.Key, err = s.masks.MaskKey(q.Domain, h.Key)
			}
			label := kb.Untrusted
			if h.Trusted {
				label = kb.Trusted
			}
			list = append(list, ask.Hit{Key: h.Key, Score: h.Score, Snippet: h.Snippet, Label: label})
		}
		return err
	})
	return list, err
}

// A Step is one change of a key.
type Step struct {
	Revision uint64 `json:"revision"`
	Action   string `json:"action"` // put or delete
	Size     int    `json:"size"`
	Origin
}

// A Chain is who changed a key, oldest first.
type Chain struct {
	Domain  string `json:"domain"`
	Key     string `json:"key"`
	NotKept int    `json:"not_kept"` // changes between the first and the others
	Steps   []Step `json:"steps"`
}

// Why is who wrote a value, and what was there before.
func (s *Session) Why(ctx context.Context, domain, key string) (*Chain, error) {
	found, err := s.view.Why(ctx, domain, key)
	if err != nil {
		return nil, absentIn(err, domain, key)
	}
	c := &Chain{Domain: domain, Key: key, NotKept: found.Left, Steps: []Step{}}
	for _, f := range found.Steps {
		step := Step{f.Revision, "put", f.Size, originOf(f.Origin)}
		if f.Deleted {
			step.Action = "delete"
		}
		c.Steps = append(c.Steps, step)
	}
	return c, nil
}
