package hostcalls

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/base/strictjson"
)

// Bounds of a search.
const (
	MaxQuery    = 4096 // bytes of text
	MaxHits     = 100
	DefaultHits = 10
)

type searchReq struct {
	domain, query, text string
	k                   int
}

// kbSearch searches what the run may see: with X_raw the values, without it
// their masked forms, which have an index of their own. Whatever is masked can
// neither be found, nor counted, nor read off the order of answers.
var kbSearch = define("kb_search", 2, caps.KBRead, gated[searchReq]{
	decode: decodeSearch, done: true,
	touches: func(r searchReq) (caps.Request, string) {
		return caps.Request{Family: caps.KBRead, Name: r.domain}, r.domain
	},
	budget:  func(h *Host, _ searchReq) (caps.Code, bool) { return caps.Unavailable, h.cfg.KB == nil },
	payload: func(r searchReq) [][]byte { return [][]byte{[]byte(r.domain), []byte(r.query)} },
	do: func(ctx context.Context, h *Host, _ gate.Permit, r searchReq) ([]byte, error) {
		raw, err := h.seesRaw("kb_search", r.domain)
		if err != nil {
			return nil, err
		}
		q := KBQuery{Domain: r.domain, Text: r.text, K: r.k, Raw: raw}
		if h.cfg.Secrets != nil {
			q.Clean = h.scrub
		}
		hits, err := h.cfg.KB.Search(ctx, q)
		if err != nil {
			return nil, kbError(err)
		}
		if !raw {
			if hits, err = h.maskHits(r.domain, hits); err != nil {
				return nil, err
			}
		}
		if err := h.takeInHits(r.domain, hits); err != nil {
			return nil, err
		}
		if hits == nil {
			hits = []KBHit{}
		}
		return encodeList(hits)
	},
})

func decodeSearch(in []string) (searchReq, error) {
	r := searchReq{domain: strings.Clone(in[0]), query: in[1], k: DefaultHits}
	if err := checkText(r.domain); err != nil {
		return r, err
	}
	if len(r.query) > 2*MaxQuery+256 {
		return r, &Fail{Errno: TooBig, Hint: "text: at most 4096 bytes"}
	}
	given := false
	err := readObject(r.query, func(d *strictjson.Reader, key string) (err error) {
		switch key {
		case "text":
			given = true
			r.text, err = d.Text()
		case "k":
			r.k, err = readHits(d)
		default:
			err = unknownKey("text and k")
		}
		return err
	})
	switch {
	case err != nil:
		return r, err
	case !given:
		return r, errors.New("text: missing")
	case len(r.text) > MaxQuery:
		return r, &Fail{Errno: TooBig, Hint: "text: at most 4096 bytes"}
	}
	return r, nil
}

// readHits reads how many answers are wanted.
func readHits(d *strictjson.Reader) (int, error) {
	if k, err := d.Whole(); err == nil && k >= 1 && k <= MaxHits {
		return int(k), nil
	}
	return 0, fmt.Errorf("a whole number from 1 to %d is wanted", MaxHits)
}
