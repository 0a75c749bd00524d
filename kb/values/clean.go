package values

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"runloop.dev/rlp/kb/words"
)

// searchClean is a search of which nothing shows what q.Clean takes out. A
// snippet that was cut by the owner may hold a part of it, which nobody would
// know any more: so it is cut here, after the whole was cleaned.
func (v *View) searchClean(ctx context.Context, q *Query) ([]Hit, error) {
	want := q.K
	if want == 0 {
		want = DefaultHits
	}
	for limit := want; ; limit = MaxHits {
		hits, err := v.find(ctx, q, limit)
		if err != nil {
			return nil, err
		}
		kept, err := v.clean(ctx, q, hits, want)
		if err != nil || len(kept) == want || len(hits) < limit || limit == MaxHits {
			return kept, err
		}
	}
}

// clean is the first of the hits, at most want, with clean snippets.
func (v *View) clean(ctx context.Context, q *Query, hits []Hit, want int) ([]Hit, error) {
	wanted := map[string]bool{}
	for _, w := range words.Distinct(q.Text, maxWords) {
		wanted[w] = true
	}
	var kept []Hit
	for _, h := range hits {
		if len(kept) == want {
			break
		}
		if h.Snippet != "" {
			c, err := v.Content(ctx, q.Domain, h.Key)
			if errors.Is(err, fs.ErrNotExist) {
				continue // deleted since
			}
			if err == nil {
				h.Trusted = c.Trusted // it may be another value by now
				h.Snippet, err = v.cleanSnippet(q, c.Bytes, c.Plain, wanted)
			}
			if err != nil {
				return nil, err
			}
			if h.Snippet == "" {
				continue
			}
		}
		kept = append(kept, h)
	}
	return kept, nil
}

// cleanSnippet is the snippet of a value, "" when the words are nowhere in it
// but in what was taken out.
func (v *View) cleanSnippet(q *Query, value []byte, plain bool, wanted map[string]bool) (string, error) {
	masked := func(p []byte) ([]byte, error) {
		if q.Raw {
			return p, nil
		}
		return v.opt.masked(q.Domain, p)
	}
	shown, err := value, error(nil)
	if !plain {
		if shown, err = masked(value); err != nil {
			return "", err
		}
	}
	there := map[string]bool{} // what takes the place of a text has words of its own
	for _, text := range words.Texts(shown) {
		words.Each(text, func(word []byte, _, _ int) bool {
			if wanted[string(word)] {
				there[string(word)] = true
			}
			return len(there) < len(wanted)
		})
	}
	if clean := q.Clean(value); !bytes.Equal(clean, value) {
		if !q.Raw && words.IsDocument(value) && !words.IsDocument(clean) {
			return "", nil // masks go by the structure that is lost
		}
		if shown, err = masked(clean); err != nil { // in this order: a mask would cut in two as well
			return "", err
		}
	}
	texts := words.Texts(shown)
	for i, text := range texts {
		texts[i] = string(q.Clean([]byte(text)))
	}
	return words.Snippet(texts, there), nil
}
