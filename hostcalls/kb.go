package hostcalls

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

// kbBudget refuses a write that would pass limits.kb_write_bytes, or a value
// that is longer than a condition leaves.
func kbBudget(h *Host, r kbReq) (caps.Code, bool) {
	return caps.BudgetExhausted, h.over(caps.KBMaxValueBytes, int64(len(r.value))) || !h.budget.Allows(caps.KBWriteBytes,
		int64(len(r.value)))
}

var kbGet = define("kb_get", 2, caps.KBRead, gated[kbReq]{
	decode: kbKey, touches: kbReads, done: true,
	do: func(ctx context.Context, h *Host, _ gate.Permit, r kbReq) ([]byte, error) {
		raw, err := h.seesRaw("kb_get", r.domain)
		if err != nil {
			return nil, err
		}
		key, err := h.keyToRead(ctx, r, raw)
		if err != nil {
			return nil, err
		}
		v, err := h.cfg.KB.Get(ctx, r.domain, key)
		if err == nil {
			err = h.takeInValue(r, v)
		}
		if err != nil || raw || v.Plain && h.cfg.Masks != nil {
			return v.Bytes, kbError(err)
		}
		return h.mask(r.domain, h.scrubFirst(v.Bytes))
	},
})

var kbPut = define("kb_put", 3, caps.KBWrite, gated[kbReq]{
	decode: kbValue, touches: kbWrites, payload: kbPayload, budget: kbBudget, done: true,
	do: func(ctx context.Context, h *Host, _ gate.Permit, r kbReq) ([]byte, error) {
		key, err := h.place(ctx, "kb_put", r)
		if err != nil {
			return nil, err
		}
		rev, err := h.cfg.KB.Put(ctx, h.change(r, key))
		return h.wrote(r, rev, err)
	},
})

var kbCAS = define("kb_cas", 4, caps.KBWrite, gated[kbReq]{
	decode: kbRevision, touches: kbWrites, payload: kbPayload, budget: kbBudget, done: true,
	do: func(ctx context.Context, h *Host, _ gate.Permit, r kbReq) ([]byte, error) {
		key, err := h.place(ctx, "kb_cas", r)
		if err != nil {
			return nil, err
		}
		rev, err := h.cfg.KB.CAS(ctx, h.change(r, key), r.revision)
		return h.wrote(r, rev, err)
	},
})

var kbDelete = define("kb_delete", 2, caps.KBWrite, gated[kbReq]{
	decode: kbKey, touches: kbWrites, done: true,
	do: func(ctx context.Context, h *Host, _ gate.Permit, r kbReq) ([]byte, error) {
		key, err := h.keyToWrite(ctx, "kb_delete", r)
		if err != nil {
			return nil, err
		}
		return nil, kbError(h.cfg.KB.Delete(ctx, h.change(r, key)))
	},
})

var kbList = define("kb_list", 2, caps.KBRead, gated[kbReq]{
	decode: kbPrefix, touches: kbReads, done: true,
	do: func(ctx context.Context, h *Host, _ gate.Permit, r kbReq) ([]byte, error) {
		raw, err := h.seesRaw("kb_list", r.domain)
		if err != nil {
			return nil, err
		}
		list := h.listMasked
		if raw {
			list = h.listRaw
		}
		entries, err := list(ctx, r)
		if err != nil {
			return nil, err
		}
		if err := h.takeInKeys(r.domain, entries); err != nil {
			return nil, err
		}
		return encodeList(entries)
	},
})

// change is what r makes of the stored key.
func (h *Host) change(r kbReq, key string) KBChange {
	return KBChange{Domain: r.domain, Key: key, Value: []byte(r.value), Because: h.taintedBy()}
}

func (h *Host) wrote(r kbReq, revision uint64, err error) ([]byte, error) {
	if err != nil {
		return nil, kbError(err)
	}
	h.budget.Take(caps.KBWriteBytes, int64(len(r.value)))
	h.out = strconv.AppendUint(h.out[:0], revision, 10)
	return h.out, nil
}

type kbReq struct {
	domain, key string
	value       string
	revision    uint64
}

func (r kbReq) target() string { return r.domain + "/" + r.key }

var errKey = &Fail{Errno: Inval, Hint: "a key is 1 to 1024 bytes of UTF-8 without control characters"}

func kbKey(in []string) (kbReq, error) {
	r := kbReq{domain: strings.Clone(in[0]), key: strings.Clone(in[1])}
	if r.key == "" {
		return r, errKey
	}
	return r, checkText(r.domain, r.key)
}

func kbPrefix(in []string) (kbReq, error) {
	r := kbReq{domain: strings.Clone(in[0]), key: strings.Clone(in[1])}
	return r, checkText(r.domain, r.key)
}

func checkText(words ...string) error {
	for _, w := range words {
		if len(w) > MaxKey || !utf8.ValidString(w) || strings.ContainsFunc(w, func(r rune) bool {
			return r < ' ' ||
				r == 0x7f
		}) {
			return errKey
		}
	}
	return nil
}

func kbValue(in []string) (kbReq, error) {
	r, err := kbKey(in)
	r.value = in[2]
	if err == nil && len(r.value) > MaxValue {
		err = &Fail{Errno: TooBig, Hint: "a value is at most 1 MiB"}
	}
	return r, err
}

func kbRevision(in []string) (kbReq, error) {
	r, err := kbValue(in)
	if err != nil {
		return r, err
	}
	r.revision, err = strconv.ParseUint(in[3], 10, 64)
	if err != nil {
		return r, &Fail{Errno: Inval, Hint: "the revision is decimal text, 0 for a key that is not there"}
	}
	return r, nil
}

func kbReads(r kbReq) (caps.Request, string) {
	return caps.Request{Family: caps.KBRead, Name: r.domain}, r.target()
}

func kbWrites(r kbReq) (caps.Request, string) {
	return caps.Request{Family: caps.KBWrite, Name: r.domain}, r.target()
}

func kbPayload(r kbReq) [][]byte {
	return [][]byte{[]byte(r.domain), []byte(r.key), []byte(r.value)}
}

// kbError gives a missing key its own number; what the store says otherwise is
// either a Fail already or the host's own trouble.
func kbError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &Fail{Errno: Noent, Hint: "no such key"}
	}
	return err
}
