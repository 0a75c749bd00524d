package hostcalls

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

// Whatever the reader takes is JSON, and what it makes of it is what anybody's
// reader does.
func FuzzJSONText(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { "a" : "b" , "l":["x","\u00e9\ud83d\ude00"], "n": 12, "o":{"k":"\ud800"} } `, `{"a":"x","a":"y"}`, `{"n":01}`, `{"n":1.0}`,
		`{"n":-0}`, `{"a":"` + "\x00" + `"}`, `{"a":"\x"}`, `{"l":["x",]}`, `{"a":"b",}`, `{"\u0061":"b"}`, `{} {}`, "{\"a\":\"\xff\"}", `{"a":"\`, `{"n":9223372036854775808}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := map[string]any{}
		err := readObject(text, func(d *jsonText, key string) (err error) {
			got[key], err = anyOf(d, key)
			return err
		})
		if err != nil {
			return
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is %v, want %v (%v)", text, got, want, err)
		}
	})
}

// anyOf reads a value of the kind that its key begins with.
func anyOf(d *jsonText, key string) (any, error) {
	switch (key + " ")[0] {
	case 'l':
		list := []any{}
		if !d.eat('[') {
			return nil, fmt.Errorf("%s: a list is wanted", key)
		}
		err := d.items(key, func() error {
			s, err := d.text(key)
			list = append(list, s)
			return err
		})
		return list, err
	case 'n':
		n, ok := d.whole()
		if !ok {
			return nil, fmt.Errorf("%s: a number is wanted", key)
		}
		return float64(n), nil
	case 'o':
		o := map[string]any{}
		err := d.members(key, func(d *jsonText, k string) (err error) {
			o[k], err = d.text(k)
			return err
		})
		return o, err
	}
	return d.text(key)
}

// A text that is written is read as what the standard library makes of it.
func FuzzAppendJSON(f *testing.F) {
	for _, s := range []string{"", "plain", `"\`, "\x00\x1f\x7f", "é\u2028\U0001f600", "\xff", "a\xe2\x82", "\xed\xa0\x80b", "\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var got, want string
		own := appendJSON([]byte("x"), s)
		if err := json.Unmarshal(own[1:], &got); err != nil {
			t.Fatalf("%q is %s: %v", s, own, err)
		}
		if err := json.Unmarshal(text, &want); err != nil || got != want {
			t.Fatalf("%q is %q, want %q (%v)", s, got, want, err)
		}
	})
}
