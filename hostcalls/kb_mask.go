package hostcalls

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unsafe"

	"runloop.dev/rlp/caps"
)

// rawOf is the bit that lifts the masking of a domain.
func (b *kbView) rawOf(domain string) *rawDomain {
	for i := range b.raws {
		if b.raws[i].domain == domain {
			return &b.raws[i]
		}
	}
	b.raws = append(b.raws, rawDomain{domain: strings.Clone(domain), name: domain + "_raw"})
	return &b.raws[len(b.raws)-1]
}

// holdsRaw reports whether the run may see the domain unmasked now.
func (b *kbView) holdsRaw(r *rawDomain) bool {
	return b.cfg.Gate.Set().Check(caps.Request{Family: caps.KBRead, Name: r.name}).Allow
}

// errNoKB is what a run without a knowledge base is told.
var errNoKB = &Fail{Errno: Notsup, Hint: "there is no knowledge base here"}

// seesRaw reports whether the call op sees the domain unmasked. That it does is
// a decision of its own and recorded once a run, as that of the clock is; that
// it does not takes nothing from what was permitted, which is to see masks.
func (b *kbView) seesRaw(op, domain string) (bool, error) {
	r := b.rawOf(domain)
	switch {
	case b.cfg.KB == nil:
		return false, errNoKB
	case !b.holdsRaw(r):
		return false, nil
	case r.isRecorded:
		return true, nil
	}
	o, err := b.cfg.Gate.Op(op)
	if err != nil {
		return false, err
	}
	if _, err := b.cfg.permit(o, caps.Request{Family: caps.KBRead, Name: r.name}, r.name, nil); err != nil {
		return false, err
	}
	r.isRecorded = true
	return true, nil
}

// mayRead reports whether the run may read the domain, masked at least.
func (b *kbView) mayRead(domain string) bool {
	return b.cfg.Gate.Set().Check(caps.Request{Family: caps.KBRead, Name: domain}).Allow
}

// errNoMasks keeps a store without masks from being read raw.
var errNoMasks = &Fail{Errno: Notsup, Hint: "values cannot be masked here, so they are not shown"}

func (b *kbView) mask(domain string, value []byte) ([]byte, error) {
	if b.cfg.Masks == nil {
		return nil, errNoMasks
	}
	return b.cfg.Masks.Mask(domain, value)
}

func (b *kbView) maskKey(domain, key string) (string, error) {
	if b.cfg.Masks == nil {
		return "", errNoMasks
	}
	return b.cfg.Masks.MaskKey(domain, key)
}

// rawHint is what a run would need to see a domain unmasked.
func rawHint(what, domain string) *Fail {
	return &Fail{Errno: Inval, Hint: what + `, or kb_read = ["` + domain + `", "` + domain + `_raw"]`}
}

// keyToRead is the stored key that r names: as it is, or by its mask. A run that
// sees masks names what is masked by its mask alone, or it could try out who is
// stored here.
func (b *kbView) keyToRead(ctx context.Context, r kbReq, raw bool) (string, error) {
	if b.hasMark(r.key) {
		return b.unmasked(ctx, r.domain, r.key)
	}
	if raw {
		return r.key, nil
	}
	if b.readKey == [2]string{r.domain, r.key} {
		return r.key, nil
	}
	masked, err := b.maskKey(r.domain, r.key)
	if err == nil && masked != r.key {
		err = rawHint("this key is personal: name it as kb_list does, by its mask", r.domain)
	}
	if err == nil {
		b.readKey = [2]string{r.domain, r.key}
	}
	return r.key, err
}

// keyToWrite is the same for what changes a value. To put one under a personal
// key is answered alike whether it is there; comparing and deleting would tell.
func (b *kbView) keyToWrite(ctx context.Context, op string, r kbReq) (string, error) {
	if b.cfg.KB == nil {
		return "", errNoKB
	}
	if b.hasMark(r.key) {
		if !b.mayRead(r.domain) {
			return "", rawHint("a mask names what may be read", r.domain)
		}
		return b.unmasked(ctx, r.domain, r.key)
	}
	if op == "kb_put" || b.cfg.Masks == nil {
		return r.key, nil
	}
	masked, err := b.maskKey(r.domain, r.key)
	if err != nil || masked == r.key {
		return r.key, err
	}
	raw := false
	if b.mayRead(r.domain) {
		raw, err = b.seesRaw(op, r.domain)
	}
	if err == nil && !raw {
		err = rawHint("this key is personal: name it as kb_list does, by its mask", r.domain)
	}
	return r.key, err
}

func (b *kbView) hasMark(key string) bool {
	return b.cfg.Masks != nil && strings.Contains(key, "<") && len(b.cfg.Masks.Marks([]byte(key))) > 0
}

// unmasked is the stored key of which masked is the masked form.
func (b *kbView) unmasked(ctx context.Context, domain, masked string) (string, error) {
	key, ok := b.realKeys[domain][masked]
	if !ok {
		if _, err := b.maskedKeys(ctx, domain, ""); err != nil {
			return "", err
		}
		key, ok = b.realKeys[domain][masked]
	}
	switch {
	case !ok:
		return "", &Fail{Errno: Noent, Hint: "no such key"}
	case key == "":
		return "", &Fail{Errno: Inval, Hint: "several keys have this mask; only their own names tell them apart"}
	}
	return key, nil
}

// A maskedEntry is an entry under the name that the run sees.
type maskedEntry struct {
	KBEntry
	real string
}

// maskedKeys lists the entries whose stored keys begin with prefix, and
// remembers which masks stand for which of them. A key that is shared by
// several is remembered as none.
func (b *kbView) maskedKeys(ctx context.Context, domain, prefix string) ([]maskedEntry, error) {
	entries, err := b.cfg.KB.List(ctx, domain, prefix)
	if err != nil {
		return nil, kbError(err)
	}
	real := map[string]string{}
	list := make([]maskedEntry, len(entries))
	for i, e := range entries {
		masked, err := b.maskKey(domain, e.Key)
		if err != nil {
			return nil, err
		}
		if masked != e.Key {
			if _, shared := real[masked]; shared {
				real[masked] = ""
			} else {
				real[masked] = e.Key
			}
		}
		list[i] = maskedEntry{KBEntry{masked, e.Revision, e.Size, e.Trusted}, e.Key}
	}
	if prefix == "" {
		if b.realKeys == nil {
			b.realKeys = map[string]map[string]string{}
		}
		b.realKeys[domain] = real
		if err := b.remembered.Set(ctx, sizeOf(b.realKeys)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// sizeOf is what keys take in memory, roughly.
func sizeOf(keys map[string]map[string]string) (n int) {
	for _, of := range keys {
		for masked, real := range of {
			n += 2*int(unsafe.Sizeof(masked)) + len(masked) + len(real)
		}
	}
	return n
}

// listMasked is what kb_list shows a run that sees masks: the prefix, the order
// and the sizes are those of what it sees.
func (b *kbView) listMasked(ctx context.Context, r kbReq) ([]KBEntry, error) {
	stored, _, _ := strings.Cut(r.key, "<") // what stands before a mask is stored as it is
	entries, err := b.maskedKeys(ctx, r.domain, stored)
	if err != nil {
		return nil, err
	}
	list := []KBEntry{}
	for _, e := range entries {
		if !strings.HasPrefix(e.Key, r.key) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		stored, err := b.cfg.KB.Get(ctx, r.domain, e.real)
		if err = kbError(err); err != nil {
			if f := (*Fail)(nil); errors.As(err, &f) && f.Errno == Noent {
				continue // deleted since
			}
			return nil, err
		}
		if !stored.Plain {
			if stored.Bytes, err = b.mask(r.domain, stored.Bytes); err != nil {
				return nil, err
			}
		}
		e.Size = len(stored.Bytes)
		list = append(list, e.KBEntry)
	}
	slices.SortFunc(list, func(a, b KBEntry) int {
		if c := strings.Compare(a.Key, b.Key); c != 0 {
			return c
		}
		return cmp.Compare(a.Revision, b.Revision)
	})
	return list, nil
}

// maskHits masks the names of what a search found.
func (b *kbView) maskHits(domain string, hits []KBHit) ([]KBHit, error) {
	for i := range hits {
		key, err := b.maskKey(domain, hits[i].Key)
		if err != nil {
			return nil, err
		}
		hits[i].Key = key
	}
	return hits, nil
}

// keepsData refuses a value that would put masks where the stored one holds
// what they stand for: an agent that changes a value which it saw masked would
// destroy the rest of it. Where the run names a personal key by itself it is
// refused such a value whatever is stored, or it could try out who is, and with
// what data.
func (b *kbView) keepsData(ctx context.Context, r kbReq, key string) error {
	domain, named, value := r.domain, r.key, r.value
	if b.cfg.Masks == nil || !b.mayRead(domain) || b.holdsRaw(b.rawOf(domain)) {
		return nil
	}
	marks := b.cfg.Masks.Marks([]byte(value))
	if len(marks) == 0 {
		return nil
	}
	if named == key {
		masked, err := b.maskKey(domain, key)
		if err == nil && masked != key {
			err = rawHint("this key is personal: a value with masks is stored under its mask", domain)
		}
		if err != nil {
			return err
		}
	}
	stored, err := b.cfg.KB.Get(ctx, domain, key)
	if err = kbError(err); err != nil {
		if f := (*Fail)(nil); errors.As(err, &f) && f.Errno == Noent {
			return nil
		}
		return err
	}
	literal := b.cfg.Masks.Marks(stored.Bytes)
	masked, err := b.mask(domain, bytes.Clone(stored.Bytes))
	if err != nil {
		return err
	}
	for _, m := range b.cfg.Masks.Marks(masked) {
		if slices.Contains(marks, m) && !slices.Contains(literal, m) {
			return rawHint("the value holds the mask "+m+
				" of what is stored here, which would be lost: store yours under another key", domain)
		}
	}
	return nil
}

// encodeList is JSON with the brackets of masks as they are.
func encodeList(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func (b *kbView) listRaw(ctx context.Context, r kbReq) ([]KBEntry, error) {
	entries, err := b.cfg.KB.List(ctx, r.domain, r.key)
	if entries == nil {
		entries = []KBEntry{}
	}
	return entries, kbError(err)
}

// place is the stored key that a value goes to, once it may.
func (b *kbView) place(ctx context.Context, op string, r kbReq) (string, error) {
	key, err := b.keyToWrite(ctx, op, r)
	if err != nil {
		return "", err
	}
	return key, b.keepsData(ctx, r, key)
}
