package values

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
	"runloop.dev/rlp/kb/words"
)

// Bounds of a search.
const (
	MaxHits     = 100  // answers
	DefaultHits = 10   // answers, when nobody says how many
	MaxQuery    = 4096 // bytes of text
	maxWords    = 32   // different words of a text that are looked for; the first ones

	// snippetWork is how many bytes of values one search reads for its snippets;
	// what is found beyond them has none.
	snippetWork = 8 << 20
)

// A Hit is one answer of a search.
type Hit struct {
	Key     string  `cbor:"1,keyasint"`
	Score   float64 `cbor:"2,keyasint"` // above 0; comparable within one answer
	Snippet string  `cbor:"3,keyasint"` // of the text around a word, in one line
	Trusted bool    `cbor:"4,keyasint"` // the value's label is [Trusted]
}

// Search returns the values of a domain that suit a text best, by BM25 over
// their words, best first and newer before older. Without q.Raw it sees masked
// values only: what is hidden can neither be found nor does it change order,
// scores or snippets. What q.Clean takes out is in no snippet.
func (v *View) Search(ctx context.Context, q Query) ([]Hit, error) {
	if err := v.checkDomain(q.Domain); err != nil {
		return nil, err
	}
	if q.Clean != nil {
		return v.searchClean(ctx, &q)
	}
	return v.find(ctx, &q, q.K)
}

// find is what the store answers.
func (v *View) find(ctx context.Context, q *Query, limit int) ([]Hit, error) {
	r, err := wire.Ask(ctx, v.asker, &searchRequest{Domain: q.Domain, Text: q.Text, Limit: limit, Raw: q.Raw})
	if err != nil {
		return nil, err
	}
	return r.Hits, nil
}

// A searchRequest asks for the values of a domain that suit a text best.
type searchRequest struct {
	Domain string `cbor:"1,keyasint"`
	Text   string `cbor:"2,keyasint"`
	Limit  int    `cbor:"3,keyasint,omitempty"` // 0: [DefaultHits]
	Raw    bool   `cbor:"4,keyasint,omitempty"` // of what is not masked
}

type searchAnswer struct {
	Hits []Hit `cbor:"1,keyasint,omitempty"`
}

func (*searchRequest) Op() wire.Opcode { return wire.OpSearch }

func (q *searchRequest) Check() error { return checkDomain(q.Domain) }

func (q *searchRequest) Do(ctx context.Context, v *Values) (*searchAnswer, error) {
	switch {
	case len(q.Text) > MaxQuery || !utf8.ValidString(q.Text):
		return nil, wire.Invalidf("a text to search for is at most %d bytes of UTF-8", MaxQuery)
	case q.Limit < 0 || q.Limit > MaxHits:
		return nil, wire.Invalidf("a search has 1 to %d answers, not %d", MaxHits, q.Limit)
	case q.Limit == 0:
		q.Limit = DefaultHits
	}
	txn := v.db.NewTransaction(false)
	defer txn.Discard()
	s := &searcher{Values: v, txn: txn, domain: q.Domain, raw: q.Raw, work: snippetWork}
	best, err := s.rank(ctx, words.Distinct(q.Text, maxWords), q.Limit)
	if err != nil {
		return nil, err
	}
	r := &searchAnswer{}
	wanted := map[string]bool{}
	for _, w := range words.Distinct(q.Text, maxWords) {
		wanted[w] = true
	}
	for _, b := range best {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := s.hit(b, wanted)
		if err != nil {
			return nil, err
		}
		r.Hits = append(r.Hits, h)
	}
	return r, nil
}

// A searcher answers one search of one index.
type searcher struct {
	*Values
	txn    *badger.Txn
	domain string
	raw    bool
	work   int // bytes that may still be read for snippets
}

// A scored is a document and how well it suits.
type scored struct {
	doc   uint64
	score float64
}

// rank finds the k best documents.
func (s *searcher) rank(ctx context.Context, words []string, k int) ([]scored, error) {
	t, err := readTally(s.txn, s.domain)
	if err != nil {
		return nil, err
	}
	b := bm25{docs: float64(t.docs), mean: float64(t.words) / float64(t.docs)}
	if s.raw {
		b = bm25{docs: float64(t.rawDocs), mean: float64(t.rawWs) / float64(t.rawDocs)}
	}
	var all []scored
	for _, w := range words {
		list, err := s.postings(ctx, w)
		if err != nil {
			return nil, err
		}
		all = b.merge(all, list)
	}
	return bestOf(all, k), nil
}

// postings are the documents that a word is in, in their order.
func (s *searcher) postings(ctx context.Context, word string) ([]posting, error) {
	masked, err := s.chunks(ctx, indexMasked, word)
	if err != nil || !s.raw {
		return masked, err
	}
	raw, err := s.chunks(ctx, indexRaw, word)
	if err != nil {
		return nil, err
	}
	same := slices.DeleteFunc(masked, func(p posting) bool { return p.differs })
	if len(raw) == 0 {
		return same, nil
	}
	all := append(same, raw...)
	slices.SortFunc(all, func(a, b posting) int { return cmp.Compare(a.doc, b.doc) })
	return all, nil
}

func (s *searcher) chunks(ctx context.Context, index byte, word string) ([]posting, error) {
	prefix := keyTerm(s.domain, index, word)
	it := s.txn.NewIterator(badger.IteratorOptions{Prefix: prefix, PrefetchValues: false})
	defer it.Close()
	var list []posting
	n := 0
	for it.Rewind(); it.Valid(); it.Next() {
		if n++; n&1023 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err := it.Item().Value(func(p []byte) (err error) {
			list, err = readChunk(list, db.TailNumber(it.Item().Key()), p)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%w: reading the index of %s: %w", wire.ErrDamaged, s.domain, err)
		}
	}
	return list, nil
}

// hit is a document as it is shown.
func (s *searcher) hit(b scored, wanted map[string]bool) (Hit, error) {
	item, err := s.txn.Get(keyDoc(s.domain, b.doc))
	var key string
	if err == nil {
		err = item.Value(func(p []byte) (err error) {
			key, err = docKey(p)
			return err
		})
	}
	var stored []byte
	if err == nil {
		stored, err = db.Get(s.txn, keyData(s.domain, key))
	}
	if err != nil {
		return Hit{}, fmt.Errorf("%w: document %d of %s: %w", wire.ErrDamaged, b.doc, s.domain, err)
	}
	revision, head, value, err := splitData(stored)
	if err == nil && revision != b.doc {
		err = fmt.Errorf("%w: the index of %s leads to another revision of %s", wire.ErrDamaged, s.domain, key)
	}
	if err != nil {
		return Hit{}, err
	}
	h := Hit{Key: key, Score: b.score}
	if h.Trusted, err = s.isTrusted(stored, head); err != nil {
		return Hit{}, err
	}
	if s.work -= len(value); s.work < 0 {
		return h, nil
	}
	if !s.raw {
		if value, err = s.opt.masked(s.domain, value); err != nil {
			return Hit{}, err
		}
	}
	h.Snippet = words.Snippet(words.Texts(value), wanted)
	return h, nil
}

// bm25 is the usual way to say how well a document suits: rare words count
// more, and often in a short text more than once in a long one.
type bm25 struct {
	docs, mean float64
}

const (
	bm25K = 1.2
	bm25B = 0.75
)

// weight is what a word counts that is in df documents.
func (b *bm25) weight(df int) float64 {
	return math.Log1p((b.docs - float64(df) + 0.5) / (float64(df) + 0.5))
}

func (b *bm25) score(weight float64, p posting) float64 {
	n := float64(p.n)
	return weight * n * (bm25K + 1) / (n + bm25K*(1-bm25B+bm25B*float64(p.length)/b.mean))
}

// merge adds what a word's postings count to the scores so far; both are in the
// order of their documents.
func (b *bm25) merge(all []scored, list []posting) []scored {
	if len(list) == 0 {
		return all
	}
	weight := b.weight(len(list))
	out := make([]scored, 0, len(all)+len(list))
	i := 0
	for _, p := range list {
		for i < len(all) && all[i].doc < p.doc {
			out = append(out, all[i])
			i++
		}
		s := scored{p.doc, b.score(weight, p)}
		if i < len(all) && all[i].doc == p.doc {
			s.score += all[i].score
			i++
		}
		out = append(out, s)
	}
	return append(out, all[i:]...)
}

// better is the order of answers: by score, then the newer first. Nothing of a
// value or key that may be masked has a part in it.
func better(a, b scored) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.doc, a.doc))
}

// bestOf returns the k best, in their order.
func bestOf(all []scored, k int) []scored {
	best := make([]scored, 0, k+1)
	for _, s := range all {
		if len(best) == k && better(s, best[k-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, s, better)
		best = slices.Insert(best, at, s)
		if len(best) > k {
			best = best[:k]
		}
	}
	return best
}

// A Query asks for the values of a domain that suit a text best.
type Query struct {
	Domain, Text string
	K            int  // answers, 1 to [MaxHits]; 0: [DefaultHits]
	Raw          bool // look at what is stored, not at its masked form

	// Clean gives a text without what must not be shown of it, the text itself
	// when there is nothing; it never leaves this process. Answers that are found
	// by nothing else are left out, as far as values are read for snippets.
	Clean func(text []byte) []byte
}
