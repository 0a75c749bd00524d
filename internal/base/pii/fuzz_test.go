package pii

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// Whatever is masked, masking it again changes nothing, what is JSON stays it,
// and an address in it does not come out.
func FuzzMask(f *testing.F) {
	for _, s := range []string{
		`{"email":"a@b.cd","name":"x","phone":[1,"+49 30 1234567"]}`, "alice@example.org", "YWxpY2VAZXhhbXBsZS5vcmc=",
		`{"a":"{\"tel\":123456}"}`,
		"a%40b.cd &#64; \\u0040 =40", "4111 1111 1111 1111 030 1234567", "DE89 3704 0044 0532 0130 00",
		"1. 030 1234567 2.+49 30 1234567(415) 555-0132", "61 6c 69 63 65 40 61 2e 62 63", `\141\100b.cd`,
		"data: {\"dob\":1,\"name\":\"x\x01\"", "a (at) b dot org", "<email:bcdfghjkmnpq>@x.org",
		"\x00a\x00@\x00b", `[[[[[{"dob":1}]]]]]`, "Phone: 12345\n", `{"surname":"false","x":[false,"false"]}`,
		`{"zip":"12345","n":12345,"m":"\\"12345"}`, `{"name":{"first":"a"},"email":"x"}`,
	} {
		f.Add([]byte(s), byte(0))
		f.Add([]byte(s), byte(5))
	}
	m := New(testKey)
	const planted = "plant.ed@example.org"
	f.Fuzz(func(t *testing.T, value []byte, at byte) {
		check := func(value []byte) []byte {
			start := time.Now()
			out := m.mask("contacts", value)
			if took := time.Since(start); len(value) < 1<<12 && took > 3*time.Second {
				t.Fatalf("%v for %q", took, value)
			}
			if again := m.mask("contacts", out); !bytes.Equal(again, out) {
				t.Fatalf("not idempotent:\n   in %q\n once %q\ntwice %q", value, out, again)
			}
			Marks(value)
			if c := firstByte(value); (c == '{' || c == '[' || c == '"') && json.Valid(value) && !json.Valid(out) {
				t.Fatalf("no JSON any more: %q became %q", value, out)
			}
			return out
		}
		check(value)
		i := int(at) % (len(value) + 1)
		with := append(append(bytes.Clone(value[:i:i]), " "+planted+" "...), value[i:]...)
		if out := check(with); bytes.Contains(out, []byte(planted)) {
			t.Fatalf("survives: %q in %q", out, with)
		}
		if json.Valid(value) {
			in, _ := json.Marshal([]any{json.RawMessage(value), base64.StdEncoding.EncodeToString([]byte(planted))})
			out := check(in)
			var list []any
			if err := json.Unmarshal(out, &list); err != nil {
				return // masked whole
			}
			if s, _ := list[1].(string); s == base64.StdEncoding.EncodeToString([]byte(planted)) {
				t.Fatalf("survives in base64: %q", out)
			}
		}
	})
}

// The work is bounded whatever the value: hostile ones end masked whole or
// searched, soon.
func TestBounded(t *testing.T) {
	deep := "alice@example.org"
	for range 14 {
		deep = base64.StdEncoding.EncodeToString([]byte(deep))
	}
	escaped := "alice@example.org"
	for range 12 {
		b, _ := json.Marshal(map[string]string{"v": escaped})
		escaped = string(b)
	}
	const size = 1 << 20
	m := New(testKey)
	for name, value := range map[string]string{
		"base64 in base64": deep, "json in json": escaped,
		"brackets": strings.Repeat("[", size), "ats": strings.Repeat("a@", size/2),
		"locals": strings.Repeat(strings.Repeat("a", 300)+"@", size/301),
		"digits": strings.Repeat("1", size), "groups": strings.Repeat("030 ", size/4), "percent": strings.Repeat("%25",
			size/3), "amp": strings.Repeat("&amp;", size/5),
		"slashes": strings.Repeat(`\\`, size/2), "words": strings.Repeat("YWxp/", size/5),
		"base64 words": strings.Repeat("QUFBQUFBQUFB ", size/13),
		"spelled":      strings.Repeat("a at a dot ", size/11), "quotes": strings.Repeat(`"@`, size/2),
		"iban":   strings.Repeat("DE89 3704 0044 ", size/15),
		"labels": strings.Repeat("phone: ", size/7), "keys": "{" + strings.Repeat(`"email":"a@b.cd",`, size/17) + `"x":1}`,
		"zeros":   strings.Repeat("a\x00", size/2),
		"objects": strings.Repeat(`{"a":`, size/5), "open objects": strings.Repeat(`{"a\`, size/4),
		"dumps": strings.Repeat("61 ", size/3), "dump words": strings.Repeat("6161616161 ", size/11),
		"octal": strings.Repeat(`\134`, size/4),
		"ones":  strings.Repeat("1 ", size/2), "called": "call " + strings.Repeat("1 ", size/2),
		"trunks": strings.Repeat("01 ", size/3), "local digits": strings.Repeat(strings.Repeat("1.", 120)+"a@b.cd", size/246),
		"pluses": strings.Repeat("+1234567", size/8),
		"lines":  strings.Repeat(strings.Repeat("QUFB", 19)+"\n", size/77), "equals": strings.Repeat("=\n", size/2),
		"joints": strings.Repeat("QUJDREVGR0hJSktM/", size/17),
	} {
		start := time.Now()
		out := m.mask("notes", []byte(value))
		Marks([]byte(value))
		took := time.Since(start)
		t.Logf("%-18s %8d bytes %8d %v", name, len(value), len(out), took)
		if took > 10*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		if len(value) < 1<<16 && survives(out, "alice@example.org") {
			t.Errorf("%s: a datum survives", name)
		}
		if again := m.mask("notes", out); !bytes.Equal(again, out) {
			t.Errorf("%s: not idempotent", name)
		}
	}
}
