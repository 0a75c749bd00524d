package service

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"
)

const (
	// keyLife is how long a key stands for its run.
	keyLife = 24 * time.Hour
	mostKey = 255 // bytes
)

// A key is what a caller asks again by.
type key struct {
	tenant, caller, text string
	body                 [32]byte // digest of the request
}

// keyed is the run that a key stands for.
type keyed struct {
	body [32]byte
	run  string
	at   time.Time
}

// repeats are the keys that requests came with, each by its name.
type repeats map[key]keyed

// name is k without what it must come with.
func (k key) name() key {
	k.body = [32]byte{}
	return k
}

// keyOf is the key of a request; nil: it has none.
func keyOf(c *Caller, q *Request, text string) (*key, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > mostKey {
		return nil, FieldErrors{{"Idempotency-Key", fmt.Sprintf("must have at most %d bytes", mostKey)}}
	}
	// What asks again asks in another trace.
	plain := *q
	plain.TraceID, plain.ParentSpan, plain.Bundle = "", "", nil
	h := sha256.New()
	bundle := sha256.Sum256(q.Bundle)
	h.Write(bundle[:])
	if err := json.NewEncoder(h).Encode(plain); err != nil {
		return nil, FieldErrors{{"input", "must be one JSON document"}}
	}
	return &key{c.Tenant, c.who(), text, [32]byte(h.Sum(nil))}, nil
}

// before is the run that was asked for by k; nil: there is none.
func (s *Service) before(k *key) (*Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beforeLocked(k)
}

func (s *Service) beforeLocked(k *key) (*Run, error) {
	if k == nil {
		return nil, nil
	}
	was, known := s.keyed[k.name()]
	if !known {
		return nil, nil
	}
	r := s.runs[was.run]
	if r == nil || s.opt.Now().Sub(was.at) > keyLife {
		delete(s.keyed, k.name())
		return nil, nil
	}
	if was.body != k.body {
		return nil, fmt.Errorf("key %q: %w", k.text, ErrConflict)
	}
	return r, nil
}

// remember has k stand for r.
func (m repeats) remember(r *Run, k *key, now time.Time) {
	if k == nil {
		return
	}
	r.key = k
	m[k.name()] = keyed{k.body, r.id, now}
}

// forget forgets the key of a run that is no longer kept.
func (m repeats) forget(r *Run) {
	if r.key != nil && m[r.key.name()].run == r.id {
		delete(m, r.key.name())
	}
}
