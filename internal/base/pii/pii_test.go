package pii

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

var testKey = bytes.Repeat([]byte{7}, KeySize)

func masked(t testing.TB, domain, value string) string {
	t.Helper()
	m := New(testKey)
	out := m.Mask(domain, []byte(value))
	if again := m.Mask(domain, out); !bytes.Equal(again, out) {
		t.Errorf("masking again changes it:\nvalue %q\nonce  %q\ntwice %q", value, out, again)
	}
	return string(out)
}

func markOf(k Kind, datum string) string {
	w := work{masker: New(testKey)}
	return w.mark(k, []byte(datum))
}

// What the rules find in running text, and what they leave alone.
func TestText(t *testing.T) {
	alice := markOf(Email, "alice@example.org")
	for _, c := range []struct{ in, want string }{
		{"write to alice@example.org.", "write to " + alice + "."},
		{"<Alice@EXAMPLE.org>, mailto:alice@example.org", "<" + alice + ">, mailto:" + alice},
		{`"alice"@example.org`, alice},
		{"alice (at) example.org or alice [at] example [dot] org", alice + " or " + alice},
		{"alice at example dot org", alice},
		{"alice @ example.org", alice},
		{"alice＠example．org", alice},
		{"ali\u200bce@example.org", alice},
		{"alice%40example.org", alice},
		{"alice%2540example.org", alice},
		{"alice&#64;example&period;org", alice},
		{"alice&amp;#x40;example.org", alice},
		{`alice\u0040example.org`, alice},
		{`alice\100example\56org`, alice},
		{`alice\U00000040example.org`, alice},
		{"alice=40example.org", alice},
		{"https://x.org/?e=alice%40example.org&n=1", "https://x.org/?e=" + alice + "&n=1"},
		{"a@bücher.de", markOf(Email, "a@xn--bcher-kva.de")},
		{"A@XN--BCHER-KVA.de", markOf(Email, "a@xn--bcher-kva.de")},
		{"user@[192.168.0.1]", markOf(Email, "user@[192.168.0.1]")},
		{"call +49 30 1234567 now", "call " + markOf(Phone, "+49301234567") + " now"},
		{"+49 (0)30 123-4567", markOf(Phone, "+49301234567")},
		{"0049 30 1234567", markOf(Phone, "+49301234567")},
		{"030 1234567, (030) 1234567", markOf(Phone, "0301234567") + ", " + markOf(Phone, "0301234567")},
		{"(415) 555-2671 or 415.555.2671 or +1 415 555 2671", strings.Repeat(markOf(Phone, "+14155552671")+" or ", 2) +
			markOf(Phone, "+14155552671")},
		{"call 555-1234 or Tel.: 5551234", "call " + markOf(Phone, "5551234") + " or Tel.: " + markOf(Phone, "5551234")},
		{"x1 030 1234567", "x1 " + markOf(Phone, "0301234567")},
		{"01 23 45 67 89", markOf(Phone, "0123456789")},
		{"DE89 3704 0044 0532 0130 00 is it", markOf(IBAN, "DE89370400440532013000") + " is it"},
		{"de89370400440532013000", markOf(IBAN, "DE89370400440532013000")},
		{"card 4111 1111 1111 1111 12/26", "card " + markOf(Card, "4111111111111111") + " 12/26"},
		{"4111-1111-1111-1111", markOf(Card, "4111111111111111")},
		{"ssn 078-05-1120", "ssn " + markOf(ID, "078051120")},
		{"Date of birth: 1 May 1980\nnext", "Date of birth: " + markOf(Birth, "1 may 1980") + "\nnext"},
		{"/call?phone=5551234&x=1", "/call?phone=" + markOf(Phone, "5551234") + "&x=1"},
	} {
		if got := masked(t, "notes", c.in); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
		}
	}
	for _, in := range []string{
		"", "plain words", "pkg@1.2.3", "@mention and user@host", "2024-01-02 12:30", "01.02.2024", "01/02/2024 12:30",
		"1.2.3.4", "192.168.100.200",
		"look at example.com", "look at the dot product", "0.1234567", "ISBN 0-306-40615-2", "1700000000", "1700000000123",
		"3f2504e0-4f89-41d3-9a0c-0305e82c3301", "4111 1111 1111 1112", "DE89370400440532013001", "100%", "a&b", `C:\new`,
		"x = 1; y: 2",
		"internationalization", "https://example.org/a/b?c=d&e=f", "0 100 200 300",
	} {
		if got := masked(t, "notes", in); got != in {
			t.Errorf("control: %q became %q", in, got)
		}
	}
}

// A mask is HMAC-SHA256 of kind and datum: of a key that is another, another.
func TestMarksAreKeyed(t *testing.T) {
	for _, size := range []int{1, KeySize, 64, 65, 200} {
		key := bytes.Repeat([]byte{3}, size)
		w := work{masker: New(key)}
		h := hmac.New(sha256.New, key)
		h.Write(append([]byte{byte(Email)}, "a@b.cd"...))
		if got := w.mac(Email, []byte("a@b.cd")); !bytes.Equal(got[:], h.Sum(nil)) {
			t.Errorf("a key of %d bytes: %x", size, got)
		}
	}
	one, other := New(testKey).Mask("notes", []byte("a@b.cd")), New(bytes.Repeat([]byte{8}, KeySize)).Mask("notes",
		[]byte("a@b.cd"))
	if bytes.Equal(one, other) || bytes.Equal(one, New(testKey).Mask("notes", []byte("b@b.cd"))) {
		t.Errorf("%s is the mask of two", one)
	}
	if again := New(testKey).Mask("contacts", []byte("a@b.cd")); !bytes.Equal(one, again) {
		t.Errorf("%s in notes, %s in contacts", one, again)
	}
}

// Marks are found however their brackets are written, and made by nobody's data.
func TestMarks(t *testing.T) {
	a, b := markOf(Email, "a@b.cd"), markOf(Name, "x")
	text := a + " " + strings.ReplaceAll(strings.ReplaceAll(b, "<", `\u003c`), ">", `\u003e`) + " " + a +
		" <email:alice> <phone:123456789012> <x:bcdfghjkmnpq>"
	for _, text := range []string{base64.StdEncoding.EncodeToString([]byte("to " + a)), `{"x":"` +
		hex.EncodeToString([]byte(a)) + `"}`, inWords(hex.EncodeToString([]byte("to "+a)), 2, ":")} {
		if got := Marks([]byte(text)); !slices.Equal(got, []string{a}) {
			t.Errorf("%s: %q", text, got)
		}
	}
	if got := Marks([]byte(text)); !slices.Equal(got, []string{a, b}) {
		t.Errorf("%q", got)
	}
	m := New(testKey)
	for key, want := range map[string]string{"plain": "plain", "a@b.cd": a, "x/a@b.cd": "x/" + a, "YUBiLmNk": markOf(Data,
		"YUBiLmNk")} {
		if got := m.MaskKey("notes", key); got != want || want != key && len(Marks([]byte(got))) == 0 {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

// JSON keeps its form, and its fields say what is personal.
func TestFields(t *testing.T) {
	alice := markOf(Email, "alice@example.org")
	for _, c := range []struct{ domain, in, want string }{
		{"notes", `{"EMAIL":"Alice@example.org"}`, `{"EMAIL":"` + alice + `"}`},
		{"notes", `{ "b" : 1.50, "e-mail": "Alice <alice@example.org>", "a":1e3 }`, `{ "b" : 1.50, "e-mail": "` + alice +
			`", "a":1e3 }`},
		{"notes", `{"to":"a@b.cd, alice@example.org","from":"Berlin"}`, `{"to":"` + markOf(Email, "a@b.cd") + ", " + alice +
			`","from":"Berlin"}`},
		{"notes", `{"homePhone":"12 34","phone_2":4930123456}`, `{"homePhone":"` + markOf(Phone, "1234") + `","phone_2":"` +
			markOf(Phone, "4930123456") + `"}`},
		{"notes", `{"name":"Widget","size":3}`, `{"name":"Widget","size":3}`},
		{"notes", `{"name":"Alice  Jones","email":"alice@example.org"}`, `{"name":"` + markOf(Name, "alice jones") +
			`","email":"` + alice + `"}`},
		{"notes", `{"name":{"first":"A","last":"B"},"email":"x"}`, `{"name":{"first":"` + markOf(Name, "a") + `","last":"` +
			markOf(Name, "b") + `"},"email":"` + markOf(Email, "x") + `"}`},
		{"contacts", `{"name":"Alice Jones"}`, `{"name":"` + markOf(Name, "alice jones") + `"}`},
		{"notes", `{"address":{"street":"High St","zip":12345},"ip_address":"10.0.0.1"}`, `{"address":{"street":"` +
			markOf(Address, "high st") + `","zip":"` + markOf(Address, "12345") + `"},"ip_address":"10.0.0.1"}`},
		{"notes", `{"alice@example.org":[{"x":["alice@example.org"]}]}`, `{"` + alice + `":[{"x":["` + alice + `"]}]}`},
		{"notes", `{"p":"{\"email\":\"alice@example.org\",\"phone\":4930123456}"}`, `{"p":"{\"email\":\"` + alice +
			`\",\"phone\":\"` + markOf(Phone, "4930123456") + `\"}"}`},
		{"notes", `{"p":"a\nalice@example.org\t\"x\""}`, `{"p":"a\n` + alice + `\t\"x\""}`},
		{"notes", `"alice@example.org"`, `"` + alice + `"`},
		{"notes", `{"\u0065mail":"x y"}`, `{"\u0065mail":"` + markOf(Email, "x y") + `"}`},
		{"notes", "{\"dob\":\"1980\"}\n{\"dob\":1980}", "{\"dob\":\"" + markOf(Birth, "1980") + "\"}\n{\"dob\":\"" +
			markOf(Birth, "1980") + "\"}"},
		{"notes", `{"email":"","phone":null,"email_verified":true}`, `{"email":"","phone":null,"email_verified":true}`},
		{"notes", `{"full_name":"Ada Byron","note":"Ada Byron, not Ada Byrony","Ada Byron":1}`, `{"full_name":"` +
			markOf(Name, "ada byron") + `","note":"` + markOf(Name, "ada byron") + `, not Ada Byrony","` +
			markOf(Name, "ada byron") + `":1}`},
		{"notes", `{"zip":"12345","n":12345,"m":"in 12345"}`, `{"zip":"` + markOf(Address, "12345") + `","n":12345,"m":"in ` +
			markOf(Address, "12345") + `"}`},
		{"notes", `{"surname":"false","x":false}`, `{"surname":"` + markOf(Name, "false") + `","x":false}`},
		{"notes", `{"n":4111111111111111}`, `{"n":"` + markOf(Card, "4111111111111111") + `"}`},
		{"notes", "data: {\"dob\":\"1980\"}\n\ndata: {\"dob\":1980}\n", "data: {\"dob\":\"" + markOf(Birth, "1980") +
			"\"}\n\ndata: {\"dob\":\"" + markOf(Birth, "1980") + "\"}\n"},
		{
			"notes", "Here it is:\n```json\n{\"name\": \"Ada\", \"dob\": \"1815\"}\n```\n",
			"Here it is:\n```json\n{\"name\": \"" + markOf(Name, "ada") + "\", \"dob\": \"" + markOf(Birth, "1815") +
				"\"}\n```\n",
		},
		{"notes", "{\"note\":\"a\tb\x01\",\"dob\":\"1980\"}", "{\"note\":\"a\tb\x01\",\"dob\":\"" + markOf(Birth, "1980") +
			"\"}"},
		{"notes", `{"note":"a\qb","dob":"1980"}`, `{"note":"a\qb","dob":"` + markOf(Birth, "1980") + `"}`},
		{"notes", `{"name":"Ada","dob":"1980",`, `{"name":"` + markOf(Name, "ada") + `","dob":"` + markOf(Birth, "1980") +
			`",`},
		{"notes", `{"x":1,} [see] {"dob":"1980"}`, `{"x":1,} [see] {"dob":"` + markOf(Birth, "1980") + `"}`},
		{"notes", `{"x":{"name":"Ada"}} {name}`, `{"x":{"name":"Ada"}} {name}`},
		{"notes", `[1,2`, `[1,2`},
		{"notes", `{"email":"alice jones", broken`, `{"email":"` + markOf(Email, "alice jones") + `", broken`},
	} {
		got := masked(t, c.domain, c.in)
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
		if json.Valid([]byte(c.in)) && !json.Valid([]byte(got)) {
			t.Errorf("no JSON any more: %s", got)
		}
	}
}
