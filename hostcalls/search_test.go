package hostcalls

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// hit asks for one answer and returns what the store was asked.
func (r *rig) hit(domain, query string) (int64, string) {
	r.t.Helper()
	n, text := r.call("kb_search", domain, query)
	if n < 0 {
		return n, ""
	}
	var hits []KBHit
	if n > outRoom {
		text = r.rest()
	}
	if err := json.Unmarshal([]byte(text), &hits); err != nil || len(hits) != 1 {
		r.t.Fatalf("kb_search answers %q: %v", text, err)
	}
	return n, hits[0].Key
}

// A search sees raw values with X_raw alone, and X_raw alone is nothing.
//
//rlp:holds R26 R27
func TestSearchIsMaskedWithoutRaw(t *testing.T) {
	for _, c := range []struct {
		grants []string
		want   string
	}{
		{[]string{"kb:read:contacts"}, "contacts|ada|10|false"},
		{[]string{"kb:read:contacts", "kb:read:contacts_raw"}, "contacts|ada|10|true"}, // the control
		{[]string{"kb:read:*"}, "contacts|ada|10|false"},
		{[]string{"kb:read:contacts_raw"}, ""},
		{[]string{"kb:read:notes", "kb:read:notes_raw"}, ""},
		{[]string{"kb:read:contacts", "kb:read:notes_raw"}, "contacts|ada|10|false"},
	} {
		r := newRig(t, c.grants...)
		n, got := r.hit("contacts", `{"text":"ada"}`)
		if got != c.want || c.want == "" && n != -int64(Acces) {
			t.Errorf("%v: the store is asked %q (%d), want %q", c.grants, got, n, c.want)
		}
	}
}

// A query is one object with text and k, and nothing else; its words are not in the record.
func TestSearchQueries(t *testing.T) {
	long := strings.Repeat("x", MaxQuery)
	for query, want := range map[string]int64{
		`{"text":"ada","k":100}`: 0, `{"k":1,"text":""}`: 0, `{"text":"` + long + `"}`: 0,
		`{"text":"` + long + `x"}`: -int64(TooBig), `{"text":"` + long + long + long + `"}`: -int64(TooBig),
		`{"text":"ada","k":0}`: -28, `{"text":"ada","k":101}`: -28, `{"text":"ada","k":-1}`: -28,
		`{"text":"ada","k":1.5}`: -28, `{"text":"ada","k":"1"}`: -28, `{"text":"ada","k":1e1}`: -28,
		`{"text":["ada"]}`: -28, `{"k":3}`: -28, `{}`: -28, `[]`: -28, ``: -28, `{"text":"ada"} x`: -28,
		`{"TEXT":"ada"}`: -28, `{"text":"ada","raw":true}`: -28, `{"text":"a","text":"b"}`: -28, "{\"text\":\"\xff\"}": -28,
	} {
		r := newRig(t, "kb:read:notes")
		n, _ := r.hitOrNot(query)
		if want == 0 && n < 0 || want < 0 && n != want {
			t.Errorf("%.60q: %d, want %d", query, n, want)
		}
		for _, d := range r.log.Decisions {
			if strings.Contains(d.Target, "ada") {
				t.Errorf("the record of %q shows %q", query, d.Target)
			}
		}
		if len(r.log.Decisions) != 1 {
			t.Errorf("%q has %d records", query, len(r.log.Decisions))
		}
	}
}

func (r *rig) hitOrNot(query string) (int64, string) { return r.call("kb_search", "notes", query) }

// What is wrong with a query is said by the name of its field.
func TestSearchRefusalsNameTheField(t *testing.T) {
	for query, want := range map[string]string{
		`{"text":1}`: "text:", `{"text":"a","k":0}`: "k:", `{"text":"a","kk":1}`: "kk:", `{"k":1}`: "text: missing",
	} {
		r := newRig(t, "kb:read:notes")
		if n, a := r.denial("kb_search", "notes", query); n != -28 || !strings.HasPrefix(a.Hint, want) {
			t.Errorf("%s: %d %+v", query, n, a)
		}
	}
}

// Without a store a search is checked and recorded, and answers notsup.
func TestSearchWithoutStore(t *testing.T) {
	r := newRig(t, "kb:read:notes")
	r.host.cfg.KB = nil
	if n, a := r.denial("kb_search", "notes", `{"text":"x"}`); n != -58 || a.Reason != "unavailable" {
		t.Errorf("granted: %d %+v", n, a)
	}
	if n, a := r.denial("kb_search", "drafts", `{"text":"x"}`); n != -2 || a.Reason != "domain_not_permitted" {
		t.Errorf("not granted: %d %+v", n, a)
	}
}

// cutKB shows the last bytes of the one value that it has, of what is left of
// it when somebody cleans it.
type cutKB struct {
	memoryKB
	value string
}

func (k cutKB) Search(_ context.Context, q KBQuery) ([]KBHit, error) {
	text := k.value
	if q.Clean != nil {
		text = string(q.Clean([]byte(text)))
	}
	return []KBHit{{Key: "note", Score: 1, Snippet: text[len(text)-12:]}}, nil
}

// A run with secrets gives the store what takes their values out before it cuts.
//
//rlp:holds R82 K11
func TestSnippetsAreCutFromCleanText(t *testing.T) {
	r, told := mailRig(t, "secrets:read:"+mailKey, "kb:read:notes")
	r.host.cfg.KB = cutKB{r.kb, "the key is " + mailText}
	if _, got := r.call("kb_search", "notes", `{"text":"key"}`); !strings.Contains(got, mailText[len(mailText)-12:]) {
		t.Errorf("control: before the handle is asked for, nothing is known of the value: %q", got)
	}
	r.handle(mailKey)
	_, got := r.call("kb_search", "notes", `{"text":"key"}`)
	if got += r.rest(); strings.Contains(got, mailText[len(mailText)-8:]) || !strings.Contains(got, "/mail/key]") {
		t.Errorf("kb_search answers %q", got)
	}
	if !slices.Contains(*told, "kb_search "+mailKey) {
		t.Errorf("told %q", *told)
	}
}

// digitMasks mask digits.
type digitMasks struct{ noMasks }

func (digitMasks) Mask(_ string, v []byte) ([]byte, error) {
	return bytes.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '*'
		}
		return r
	}, v), nil
}

// A mask does not cut a secret in two: its value goes first.
//
//rlp:holds R82 K11
func TestSecretsGoBeforeMasks(t *testing.T) {
	for _, value := range []string{mailText + " 7", `{"a":"` + mailText + `","b":7}`, `{"a":` + mailText + `}`} {
		r, _ := mailRig(t, "secrets:read:"+mailKey, "kb:read:notes")
		r.host.cfg.Masks = digitMasks{}
		r.kb["notes/a"] = value
		if _, got := r.call("kb_get", "notes", "a"); !strings.Contains(got, "HqLyjWDarjtT") || strings.Contains(got, "7") {
			t.Errorf("control: before the handle is asked for: %q", got)
		}
		r.handle(mailKey)
		_, got := r.call("kb_get", "notes", "a")
		if want := strings.NewReplacer(mailText, "[secret "+mailKey+"]", "7", "*").Replace(value); got != want {
			t.Errorf("kb_get answers %q, want %q", got, want)
		}
	}
}

// FuzzSearchQuery: whatever a guest asks for is a text and a number in bounds, or refused.
func FuzzSearchQuery(f *testing.F) {
	for _, s := range []string{
		`{"text":"ada","k":3}`, `{"k":1e9,"text":"\u0000"}`, `{"text":"` + "\xff" + `"}`,
		`{"text":"\ud800"}`, `{{`,
	} {
		f.Add("notes", s)
	}
	f.Fuzz(func(t *testing.T, domain, query string) {
		r, err := decodeSearch([]string{domain, query})
		if err != nil {
			return
		}
		if r.k < 1 || r.k > MaxHits || len(r.text) > MaxQuery || !utf8.ValidString(r.text) || r.domain != domain {
			t.Fatalf("%q is %+v", query, r)
		}
	})
}

// plainKB says of every value that it is plain, or of none.
type plainKB struct {
	memoryKB
	plain bool
}

func (k plainKB) Get(ctx context.Context, domain, key string) (KBValue, error) {
	v, err := k.memoryKB.Get(ctx, domain, key)
	v.Plain = k.plain
	return v, err
}

// starMasks puts stars in the place of everything.
type starMasks struct{ noMasks }

func (starMasks) Mask(_ string, v []byte) ([]byte, error) {
	return []byte(strings.Repeat("*", len(v))), nil
}

// A value is shown unmasked only when the store says that it is plain, and never
// without masks.
//
//rlp:holds R26 R27
func TestPlainValuesNeedNoMask(t *testing.T) {
	for _, c := range []struct {
		plain bool
		masks Masks
		want  string
	}{{true, starMasks{}, "text"}, {false, starMasks{}, "****"}, {true, nil, ""}, {false, nil, ""}} {
		r := newRig(t, "kb:read:notes")
		r.kb["notes/a"] = "text"
		r.host.cfg.KB, r.host.cfg.Masks = plainKB{r.kb, c.plain}, c.masks
		n, got := r.call("kb_get", "notes", "a")
		if c.masks == nil && n != -58 || c.masks != nil && got != c.want {
			t.Errorf("plain %v, masks %v: %d %q", c.plain, c.masks, n, got)
		}
	}
}
