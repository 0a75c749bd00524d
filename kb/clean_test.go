package kb_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"runloop.dev/rlp/kb"
)

const (
	hidden     = "B0und-Value-qwertyuiop-4242"
	hiddenMark = "[secret of runloop]"
)

// clean takes the value out, as it stands or in the one encoding that it knows.
func clean(p []byte) []byte {
	p = bytes.ReplaceAll(p, []byte(strings.ReplaceAll(hidden, "-", `\u002d`)), []byte(hiddenMark))
	return bytes.ReplaceAll(p, []byte(hidden), []byte(hiddenMark))
}

// partOf is a part of the value that text holds.
func partOf(text string) string {
	const part = 6
	for i := range len(hidden) - part + 1 {
		if strings.Contains(strings.ToLower(text), strings.ToLower(hidden[i:i+part])) {
			return hidden[i : i+part]
		}
	}
	return ""
}

// twoViews are a store's, in the process that owns it and over its socket.
func twoViews(t *testing.T, mask func(string, []byte) []byte) map[string]*kb.View {
	t.Helper()
	home := t.TempDir()
	views := map[string]*kb.View{}
	for _, where := range []string{"owner", "socket"} {
		s, err := kb.Open(t.Context(), kb.Options{Home: home, Mask: mask, MaskVersion: "1"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		views[where] = s.View(kb.Origin{})
	}
	return views
}

func put(t *testing.T, v *kb.View, key, value string) {
	t.Helper()
	if _, err := v.Put(t.Context(), "notes", key, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

func search(t *testing.T, v *kb.View, q kb.Query) []kb.Hit {
	t.Helper()
	q.Domain = "notes"
	hits, err := v.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

// Wherever an agent has a snippet cut, it holds no part of what is taken out.
//
//rlp:holds R82 K11
func TestSnippetsHoldNoPartOfWhatIsCleaned(t *testing.T) {
	var around strings.Builder
	for i := range 40 {
		fmt.Fprintf(&around, "w%03d ", i)
	}
	around.WriteString(hidden)
	for i := range 40 {
		fmt.Fprintf(&around, " v%03d", i)
	}
	for form, value := range map[string]string{
		"text": around.String(), "json": `{"note":"` + around.String() + `","n":1}`,
		"escaped": `{"note":"` + strings.ReplaceAll(around.String(), hidden, strings.ReplaceAll(hidden, "-", `\u002d`)) +
			`"}`,
	} {
		for where, v := range twoViews(t, nil) {
			put(t, v, "note", value)
			shown := 0
			for i := range 40 {
				for _, word := range []string{fmt.Sprintf("w%03d", i), fmt.Sprintf("v%03d", i)} {
					if control := search(t, v, kb.Query{Text: word}); partOf(control[0].Snippet) != "" {
						shown++
					}
					hits := search(t, v, kb.Query{Text: word, Clean: clean})
					if len(hits) != 1 || !strings.Contains(hits[0].Snippet, word) || hits[0].Score <= 0 {
						t.Fatalf("%s, %s: %s finds %+v", where, form, word, hits)
					}
					if part := partOf(hits[0].Snippet); part != "" {
						t.Errorf("%s, %s: %s shows %q of it: %q", where, form, word, part, hits[0].Snippet)
					}
				}
			}
			if shown == 0 {
				t.Errorf("%s, %s: control: no snippet holds a part of the value", where, form)
			}
		}
	}
}

// What is found by words of what is taken out, or of what takes its place, is no
// answer, and leaves no hole among the answers.
//
//rlp:holds R82 K11
func TestCleanedWordsFindNothing(t *testing.T) {
	for where, v := range twoViews(t, nil) {
		put(t, v, "note", "the key is "+hidden)
		put(t, v, "other", "an older and much longer note that speaks of value among a lot of other things, once")
		for _, word := range []string{"b0und", "qwertyuiop", "4242", "qwertyuiop secret", "4242 runloop"} {
			if control := search(t, v, kb.Query{Text: word}); len(control) != 1 {
				t.Errorf("%s: control: %s finds %+v", where, word, control)
			}
			if hits := search(t, v, kb.Query{Text: word, Clean: clean}); len(hits) != 0 {
				t.Errorf("%s: %s finds %+v", where, word, hits)
			}
		}
		if control := search(t, v, kb.Query{Text: "value", K: 1}); len(control) != 1 || control[0].Key != "note" {
			t.Errorf("%s: control: %+v", where, control)
		}
		if hits := search(t, v, kb.Query{Text: "value", K: 1, Clean: clean}); len(hits) != 1 || hits[0].Key != "other" {
			t.Errorf("%s: the answer that is left is %+v", where, hits)
		}
		if hits := search(t, v, kb.Query{Text: "key value", Clean: clean}); len(hits) != 2 ||
			partOf(hits[0].Snippet+hits[1].Snippet) != "" {
			t.Errorf("%s: a word beside the value finds %+v", where, hits)
		}
		if _, err := v.Search(t.Context(), kb.Query{
			Domain: "notes", Text: "x", K: kb.MaxHits + 1,
			Clean: clean,
		}); err == nil {
			t.Errorf("%s: more answers than there may be", where)
		}
	}
}

// A mask cuts as a window does: what is taken out goes first. Where masks can
// then no longer go by the structure of a value, it is not shown.
func TestCleaningGoesBeforeMasks(t *testing.T) {
	digits := regexp.MustCompile(`[0-9]{4}`)
	mask := func(_ string, p []byte) []byte {
		if bytes.HasPrefix(p, []byte("{")) && bytes.HasSuffix(p, []byte("}")) {
			p = bytes.ReplaceAll(p, []byte("Ada"), []byte("<name>"))
		}
		return digits.ReplaceAll(p, []byte("<number>"))
	}
	for where, v := range twoViews(t, mask) {
		put(t, v, "note", "the key is "+hidden+" for 5555")
		put(t, v, "broken", `{"name":"Ada","note":"a thing","x":"`+hidden+`"}`)
		if control := search(t, v, kb.Query{Text: "key"}); len(control) != 1 || partOf(control[0].Snippet) == "" ||
			strings.Contains(control[0].Snippet, "4242") {
			t.Errorf("%s: control: %+v", where, control)
		}
		hits := search(t, v, kb.Query{Text: "key", Clean: clean})
		if len(hits) != 1 || hits[0].Snippet != "the key is "+hiddenMark+" for <number>" {
			t.Errorf("%s: %+v", where, hits)
		}
		breaking := func(p []byte) []byte { return bytes.ReplaceAll(p, []byte(`:"`+hidden+`"`), []byte(hiddenMark)) }
		if hits := search(t, v, kb.Query{Text: "thing", Clean: breaking}); len(hits) != 0 {
			t.Errorf("%s: %+v", where, hits)
		}
		if hits := search(t, v, kb.Query{Text: "thing", Clean: clean}); len(hits) != 1 || strings.Contains(hits[0].Snippet,
			"Ada") {
			t.Errorf("%s: control: %+v", where, hits)
		}
	}
}
