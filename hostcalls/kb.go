package hostcalls

import (
	"context"
	"strconv"

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

func (h *Host) listRaw(ctx context.Context, r kbReq) ([]KBEntry, error) {
	entries, err := h.cfg.KB.List(ctx, r.domain, r.key)
	if entries == nil {
		entries = []KBEntry{}
	}
	return entries, kbError(err)
}

// change is what r makes of the stored key.
func (h *Host) change(r kbReq, key string) KBChange {
	return KBChange{Domain: r.domain, Key: key, Value: []byte(r.value), Because: h.taintedBy()}
}

// place is the stored key that a value goes to, once it may.
func (h *Host) place(ctx context.Context, op string, r kbReq) (string, error) {
	key, err := h.keyToWrite(ctx, op, r)
	if err != nil {
		return "", err
	}
	return key, h.keepsData(ctx, r, key)
}

func (h *Host) wrote(r kbReq, revision uint64, err error) ([]byte, error) {
	if err != nil {
		return nil, kbError(err)
	}
	h.budget.Take(caps.KBWriteBytes, int64(len(r.value)))
	h.out = strconv.AppendUint(h.out[:0], revision, 10)
	return h.out, nil
}
