package words

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The strings of a document are found, and its names, numbers and anything that
// is no text are not.
func TestWhatIsSearched(t *testing.T) {
	for value, want := range map[string]string{
		`{"name":"Ada \"L\"","age":36,"tags":["math\u00e9matiques",{"x":"deep"}],"e":""}`: `Ada "L"|mathématiques|deep`,
		`["a"] trailing`: `["a"] trailing`, `"one"`: "one", "plain text": "plain text", "": "", "\xff\xfe": "", "a\x00b": "",
		`{"k" : "v", "s":"\ud800x"}`: "v|\ufffdx", "[1,2]": "", "{broken": "{broken",
	} {
		if got := strings.Join(Texts([]byte(value)), "|"); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
	for text, want := range map[string]string{
		"Hello, WORLD-2!": "hello world 2", "Straße ÄPFEL Σίσυφος ΣΊΣΥΦΟΣ": "straße äpfel σίσυφοσ σίσυφοσ", "K k": "k k",
		"東京 tower": "東 京 tower", "e\u0301a": "e\u0301a", "\u0301": "", "x東y": "x 東 y", "a_b.c@d": "a b c d",
		strings.Repeat("ab", 40): strings.Repeat("ab", 24), strings.Repeat("é", 25): strings.Repeat("é", 24),
	} {
		var words []string
		Each(text, func(w []byte, _, _ int) bool { words = append(words, string(w)); return true })
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A snippet is one line of whole signs around the first word that was found.
func TestSnippets(t *testing.T) {
	long := strings.Repeat("é\n", 100) + "needle " + strings.Repeat("東", 100)
	for text, want := range map[string]string{
		"a needle here": "a needle here", "a\x1b[31m\r\n needle\u202e\tz": "a [31m needle z", "nothing": "",
	} {
		if got := Snippet([]string{text}, map[string]bool{"needle": true}); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	got := Snippet([]string{"first", long}, map[string]bool{"needle": true})
	if !strings.Contains(got, "needle") || !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "…") ||
		len(got) > snippetBytes+6 || !utf8.ValidString(got) {
		t.Errorf("%q", got)
	}
}

// FuzzTerms: words lie within their text, in order, are whole and short, and
// are found again in themselves.
func FuzzTerms(f *testing.F) {
	for _, s := range []string{"Hello, wörld 東京", "\xff\x00a", "ǅ İ ſ K Å", strings.Repeat("a", 100), `{"a":"b\u00e9"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last := 0
		Each(text, func(w []byte, from, to int) bool {
			if from < last || to <= from || to > len(text) || len(w) == 0 || len(w) > maxTerm || !utf8.Valid(w) {
				t.Fatalf("%q: %q at %d:%d", text, w, from, to)
			}
			last = to
			again := Distinct(string(w), 2)
			if len(again) != 1 || again[0] != string(w) {
				t.Fatalf("%q: %q is %q when it is looked for", text, w, again)
			}
			return true
		})
		for _, piece := range Texts([]byte(text)) {
			if !utf8.ValidString(piece) {
				t.Fatalf("%q: %q", text, piece)
			}
		}
		words := map[string]bool{}
		for _, w := range Distinct(text, 32) {
			words[w] = true
		}
		if s := Snippet(Texts([]byte(text)), words); !utf8.ValidString(s) || strings.ContainsAny(s, "\n\r\x1b") {
			t.Fatalf("%q: snippet %q", text, s)
		}
	})
}
