package values

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/wire"
)

// hide masks what looks like a number of three digits or more.
var hide = regexp.MustCompile(`[0-9]{3,}`)

func testMask(_ string, value []byte) []byte { return hide.ReplaceAll(value, []byte("masked number")) }

// A slow is the same search done slowly: it keeps texts and counts words anew
// for each question.
type slow struct {
	mask bool
	docs map[string]slowDoc
}

type slowDoc struct {
	text     string
	revision uint64
}

func slowWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789äéß", r)
	})
}

func (s *slow) search(query string, k int) []Hit {
	asked := slowWords(query)
	slices.Sort(asked)
	asked = slices.Compact(asked)
	words := map[string][]string{}
	total := 0
	for key, d := range s.docs {
		text := d.text
		if s.mask {
			text = string(testMask("", []byte(text)))
		}
		if w := slowWords(text); len(w) > 0 {
			words[key] = w
			total += len(w)
		}
	}
	n, mean := float64(len(words)), float64(total)/float64(len(words))
	var hits []Hit
	for key, list := range words {
		score := 0.0
		for _, a := range asked {
			df := 0
			for _, other := range words {
				if slices.Contains(other, a) {
					df++
				}
			}
			tf := 0.0
			for _, w := range list {
				if w == a {
					tf++
				}
			}
			idf := math.Log1p((n - float64(df) + 0.5) / (float64(df) + 0.5))
			score += idf * tf * 2.2 / (tf + 1.2*(0.25+0.75*float64(len(list))/mean))
		}
		if score > 0 {
			hits = append(hits, Hit{Key: key, Score: score})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(s.docs[b.Key].revision, s.docs[a.Key].revision))
	})
	return hits[:min(k, len(hits))]
}

var vocabulary = strings.Fields("the the the the a a a of of and ada grace alan turing lovelace hopper note mail 555 " +
	"5551234 7 Äpfel maß é x1")

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(12) {
		b.WriteString(vocabulary[r.IntN(len(vocabulary))])
		b.WriteString([]string{" ", ", ", "-", "\n", "  "}[r.IntN(5)])
	}
	return b.String()
}

// Whatever was put, replaced and deleted, a search finds what the slow search
// finds, in that order and with those scores, masked and raw.
func TestSearchIsTheSlowSearch(t *testing.T) {
	e := openValues(t, Options{Mask: testMask, MaskVersion: "test"})
	seed := uint64(20260102)
	rnd := rand.New(rand.NewPCG(seed, seed))
	docs := map[string]slowDoc{}
	masked, raw := &slow{true, docs}, &slow{false, docs}
	differ := 0
	for i := range 400 {
		key := fmt.Sprint("k", rnd.IntN(60))
		if _, there := docs[key]; there && rnd.IntN(4) == 0 {
			answer(t, e, &changeRequest{Domain: "notes", Key: key, Delete: true})
			delete(docs, key)
		} else {
			text := randomText(rnd)
			r := answer(t, e, &changeRequest{Domain: "notes", Key: key, Value: []byte(text)})
			docs[key] = slowDoc{text, r.Revision}
		}
		if i%4 != 0 {
			continue
		}
		query, k := randomText(rnd), 1+rnd.IntN(20)
		a := answer(t, e, &searchRequest{Domain: "notes", Text: query, Limit: k})
		b := answer(t, e, &searchRequest{Domain: "notes", Text: query, Limit: k, Raw: true})
		same(t, query, a.Hits, masked.search(query, k))
		same(t, query, b.Hits, raw.search(query, k))
		if len(a.Hits) != len(b.Hits) {
			differ++
		}
		for _, h := range a.Hits {
			if hide.MatchString(h.Snippet) {
				t.Fatalf("%q is shown in a masked snippet", h.Snippet)
			}
		}
	}
	if differ == 0 {
		t.Error("masked and raw search never differed: the test shows nothing")
	}
}

func same(t *testing.T, query string, got, want []Hit) {
	t.Helper()
	equal := slices.EqualFunc(got, want, func(a, b Hit) bool {
		return a.Key == b.Key &&
			math.Abs(a.Score-b.Score) < 1e-9*b.Score
	})
	// Equal scores may differ in their last digit, and then the order of the two.
	if !equal && !slices.EqualFunc(got, want, func(a, b Hit) bool { return math.Abs(a.Score-b.Score) < 1e-9*b.Score }) {
		t.Fatalf("%q:\n got %v\nwant %v", query, got, want)
	}
}

// What is masked cannot be found without raw, nor does it change any answer: two
// stores that differ in it alone answer alike, byte for byte.
//
//rlp:holds R26
func TestMaskedSearchIsNoOracle(t *testing.T) {
	answers := make([][]Hit, 2)
	for i, secrets := range [][2]string{{"5551234", "777"}, {"99999", "99999"}} {
		e := openValues(t, Options{Mask: testMask, MaskVersion: "test"})
		answer(t, e, &changeRequest{Domain: "contacts", Key: "ada", Value: []byte("call ada at " + secrets[0])})
		answer(t, e, &changeRequest{Domain: "contacts", Key: "alan", Value: []byte("call alan at " + secrets[1])})
		for _, query := range []string{"5551234", "99999", "777 99999", "call", "ada 5551234", "ada 99999", "masked number"} {
			answers[i] = append(answers[i], answer(t, e, &searchRequest{Domain: "contacts", Text: query}).Hits...)
		}
		// the control
		if raw := answer(t, e, &searchRequest{Domain: "contacts", Text: secrets[0], Raw: true}); len(raw.Hits) != i+1 {
			t.Errorf("with raw %d are found", len(raw.Hits))
		}
	}
	if !slices.Equal(answers[0], answers[1]) || len(answers[0]) == 0 {
		t.Errorf("answers differ:\n%v\n%v", answers[0], answers[1])
	}
}

// After any changes the database is, byte for byte, what an index made anew
// from the values gives.
func TestIndexIsWhatARebuildGives(t *testing.T) {
	e := openValues(t, Options{Mask: testMask, MaskVersion: "test"})
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 5 {
		for range 100 {
			domain, key := []string{"notes", "contacts"}[rnd.IntN(2)], fmt.Sprint("k", rnd.IntN(40))
			q := &changeRequest{Domain: domain, Key: key, Value: []byte(randomText(rnd))}
			if rnd.IntN(3) == 0 {
				q = &changeRequest{Domain: domain, Key: key, Delete: true}
			}
			if _, err := wire.Ask(t.Context(), e, q); err != nil && wire.FailureOf(err) != wire.FailNotExist {
				t.Fatal(err)
			}
		}
		before := dumpValues(t, e, spaceDoc, spaceIndex, spaceTally)
		if err := e.values.Reindex(); err != nil {
			t.Fatal(err)
		}
		after := dumpValues(t, e, spaceDoc, spaceIndex, spaceTally)
		for k, v := range before {
			if !bytes.Equal(v, after[k]) && k[0] != spaceTally {
				t.Fatalf("%q is %x, and %x made anew", k, v, after[k])
			}
			delete(after, k)
		}
		if len(after) > 0 || len(before) == 0 {
			t.Fatalf("made anew it has %d keys more", len(after))
		}
		if _, err := e.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// The largest value, with as many long words as count, in both indexes, among
// others with the same words, is one transaction, whatever it replaces.
func TestLargestChange(t *testing.T) {
	e := openValues(t, Options{
		Domains: []string{strings.Repeat("d", 64)}, MaskVersion: "test",
		Mask: func(_ string, v []byte) []byte { return bytes.ReplaceAll(v, []byte("x"), []byte("y")) },
	})
	value := func(prefix byte) []byte {
		var b bytes.Buffer
		for i := 0; b.Len() < maxValue-64; i++ {
			fmt.Fprintf(&b, "%c%046dx ", prefix, i)
		}
		return b.Bytes()
	}
	docs := chunkDocs
	if testing.Short() {
		docs = 8
	}
	for i := range docs - 2 {
		answer(t, e, &changeRequest{Domain: strings.Repeat("d", 64), Key: fmt.Sprint(i), Value: value('a' + byte(i%2))})
	}
	big := Origin{
		Agent: strings.Repeat("a", 256), Run: strings.Repeat("r", 256), Source: strings.Repeat("s", 4096),
		ETag: strings.Repeat("e", 256),
	}
	for i := range 3 { // in this chunk and in the next
		answer(t, e, &changeRequest{Domain: strings.Repeat("d", 64), Key: "1", Value: value('a' + byte(i%2)), Origin: big})
	}
	word := fmt.Sprintf("%c%046dx", 'a', 0)
	if r := answer(t, e, &searchRequest{
		Domain: strings.Repeat("d", 64), Text: word, Raw: true,
		Limit: MaxHits,
	}); len(r.Hits) != docs/2 {
		t.Errorf("%d values have the word", len(r.Hits))
	}
}

// One search reads a bounded part of large values for its snippets, and finds
// the others all the same.
func TestSnippetsAreBounded(t *testing.T) {
	e := openValues(t, Options{})
	const values = snippetWork>>20 + 2
	for i := range values {
		answer(t, e, &changeRequest{Domain: "notes", Key: fmt.Sprint(i), Value: bytes.Repeat([]byte("word "), maxValue/5)})
	}
	with := 0
	r := answer(t, e, &searchRequest{Domain: "notes", Text: "word", Limit: MaxHits})
	for _, h := range r.Hits {
		if h.Snippet != "" {
			with++
		}
	}
	if len(r.Hits) != values || with != values-2 {
		t.Errorf("%d found, %d with a snippet", len(r.Hits), with)
	}
}

// FuzzStored: no stored bytes make reading the index panic.
func FuzzStored(f *testing.F) {
	d := docRecord{key: "a", masked: docTerms{2, []string{"x", "y"}}, raw: &docTerms{1, []string{"z"}}}
	f.Add(d.encode())
	f.Add(appendPosting(nil, posting{3, 1, 2, true}))
	f.Fuzz(func(t *testing.T, p []byte) {
		if d, err := decodeDoc(p); err == nil {
			if again, err := decodeDoc(d.encode()); err != nil || again.key != d.key {
				t.Fatal(again, err)
			}
		}
		list, err := readChunk(nil, 7, p)
		if err == nil && !slices.IsSortedFunc(list, func(a, b posting) int { return cmp.Compare(a.doc, b.doc) }) {
			t.Fatal(list)
		}
		decodeTally(p)
		if codec, err := audit.NewCodec(); err == nil {
			decodeChain(codec, p)
		}
		dropSecond(p)
		splitData(p)
	})
}
