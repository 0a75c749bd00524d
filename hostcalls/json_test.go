package hostcalls

import (
	"encoding/json"
	"testing"

	"runloop.dev/rlp/internal/base/strictjson"
)

// A text that is written is read as what the standard library makes of it.
func FuzzAppendJSON(f *testing.F) {
	for _, s := range []string{
		"", "plain", `"\`, "\x00\x1f\x7f", "é\u2028\U0001f600", "\xff", "a\xe2\x82",
		"\xed\xa0\x80b", "\ufffd",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var got, want string
		own := strictjson.AppendText([]byte("x"), s)
		if err := json.Unmarshal(own[1:], &got); err != nil {
			t.Fatalf("%q is %s: %v", s, own, err)
		}
		if err := json.Unmarshal(text, &want); err != nil || got != want {
			t.Fatalf("%q is %q, want %q (%v)", s, got, want, err)
		}
	})
}
