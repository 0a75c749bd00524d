package access

import (
	"strings"
	"testing"
)

func TestTokensAreNotAlike(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		k := newToken()
		if got, err := parseToken(k.text); err != nil || got != k {
			t.Fatalf("%q: %v", k.text, err)
		}
		if id, err := ParseID(k.text); err != nil || id != k.id {
			t.Fatalf("the id of a token: %q, %v", id, err)
		}
		if id, err := ParseID(k.id); err != nil || id != k.id {
			t.Fatalf("an id: %q, %v", id, err)
		}
		if seen[k.id] || seen[k.text[16:]] {
			t.Fatal("it came before")
		}
		seen[k.id], seen[k.text[16:]] = true, true
	}
}

// One form, or none: what is like a token is not one.
func TestParseTokenRefuses(t *testing.T) {
	good := newToken().text
	if _, err := parseToken(good); err != nil {
		t.Fatalf("control: %v", err)
	}
	for name, text := range map[string]string{
		"nothing": "", "a prefix": "rlpt_", "upper case": strings.ToUpper(good), "a space": good + " ", "a line": good + "\n",
		"NUL":     good[:20] + "\x00" + good[21:],
		"a slash": good[:8] + "/" + good[9:], "dots": "rlpt_../../../_" + good[16:], "no UTF-8": good[:30] + "\xff" +
			good[31:], "longer": good + "a",
		"shorter": good[:len(good)-1], "another prefix": "rlpx_" + good[5:], "a letter like another": good[:20] + "а" +
			good[22:], "no mark": good[:15] + "a" + good[16:],
	} {
		if k, err := parseToken(text); err == nil {
			t.Errorf("%s is a token: %+v", name, k)
		} else if len(text) > 20 && strings.Contains(err.Error(), text[16:24]) {
			t.Errorf("%s: the error has some of it", name)
		}
	}
	for _, id := range []string{"", "..", "../../etc/", "abcdefghi", "ABCDEFGHIJ", "abcdefghi/"} {
		if _, err := ParseID(id); err == nil {
			t.Errorf("%q is an id", id)
		}
	}
}

// What is read as a token is letters in one place, so that its id names a file
// of the folder and its text stands in a header.
func FuzzParseToken(f *testing.F) {
	f.Add("rlpt_abcdefghij_" + strings.Repeat("a", secretLen))
	f.Add("rlpt_../../../._" + strings.Repeat("2", secretLen))
	f.Fuzz(func(t *testing.T, s string) {
		k, err := parseToken(s)
		if err != nil {
			if k != (parsedToken{}) {
				t.Fatal("something of what is no token")
			}
			return
		}
		if k.text != s || len(k.id) != idLen || strings.Trim(k.id, letters) != "" || s != tokenPrefix+k.id+"_"+
			s[tokenLen-secretLen:] {
			t.Fatalf("%q: %+v", s, k)
		}
	})
}
