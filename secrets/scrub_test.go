package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// runWith is a run that has fetched these values.
func runWith(t testing.TB, values ...string) *Run {
	t.Helper()
	p := memory{}
	r := NewRun(func() (Provider, error) { return p, nil })
	for i, v := range values {
		id, err := ParseID(fmt.Sprintf("runloop/test/s%d", i))
		if err != nil {
			t.Fatal(err)
		}
		p[id] = v
		if _, err := r.Handle(t.Context(), id.String()); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func ignore(string) {}

// encodings are the ways in which a value may be written, made by the standard
// library and by hand: nothing of what finds them.
func encodings(v string) map[string]string {
	all := map[string]string{
		"plain": v, "hex": hex.EncodeToString([]byte(v)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(v))),
		"query": url.QueryEscape(v), "path": url.PathEscape(v), "query lower": lowerEscapes(url.QueryEscape(v)),
	}
	var every, pairs, dump strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&every, "%%%02X", v[i])
		fmt.Fprintf(&pairs, "%02x:", v[i])
		fmt.Fprintf(&dump, "%02x ", v[i])
		if i%16 == 15 {
			dump.WriteString("\n")
		}
	}
	all["every byte escaped"], all["hex pairs"], all["hex lines"] = every.String(), pairs.String(), dump.String()
	for pad := range 3 {
		text := strings.Repeat("\x00", pad) + v
		for tail := range 3 {
			b := []byte(text + strings.Repeat("\xff", tail))
			all[fmt.Sprintf("base64 +%d+%d", pad, tail)] = base64.StdEncoding.EncodeToString(b)
			all[fmt.Sprintf("base64 raw url +%d+%d", pad, tail)] = base64.RawURLEncoding.EncodeToString(b)
		}
	}
	wrapped := base64.StdEncoding.EncodeToString([]byte(v))
	for i := 20; i < len(wrapped); i += 22 {
		wrapped = wrapped[:i] + "\r\n" + wrapped[i:]
	}
	all["base64 lines"] = wrapped
	all["escaped base64"] = url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(v)))
	all["base64 in json"] = strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(v)), "/", `\/`)
	if utf8.ValidString(v) {
		text, _ := json.Marshal(v)
		all["json"] = string(text[1 : len(text)-1])
		all["json slashes"] = strings.ReplaceAll(all["json"], "/", `\/`)
		all["json units"] = units(v)
		all["html"] = html.EscapeString(v)
		all["html decimal"], all["html hex"] = numbered(v, "&#%d;"), numbered(v, "&#x%x;")
		all["html filled"], all["HTML HEX"] = numbered(v, "&#%07d;"), numbered(v, "&#X%X;")
	}
	return all
}

func lowerEscapes(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:], bytes.ToLower(out[i+1:i+3]))
		}
	}
	return string(out)
}

// numbered writes each character by its number.
func numbered(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, format, r)
	}
	return b.String()
}

func units(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= 0x10000 {
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// core is what of an encoding is the value's alone: in base64 the characters
// at the edges also hold bits of what stands beside it.
func core(name, text string, n int) string {
	_, edges, ok := strings.Cut(name, "+")
	if !ok {
		return text
	}
	pad := int(edges[0] - '0')
	return text[(8*pad+5)/6 : 8*(pad+n)/6]
}

// No value is seen in any encoding, with anything around it.
//
//rlp:holds K11
func TestEveryEncodingIsFound(t *testing.T) {
	for _, v := range []string{
		"hunter2", "sk-live-4eC39HqLyjWDarjtT1zdp7dc", "p@ss w/rd+\"quo\\te\"&é=%41", "line one of it\nline two of it",
		"\x00\x01\xfe\xff binary \x80",
		"emoji 😀 inside", strings.Repeat("ab", 40), `{"type":"service_account","key":"x/y+z=="}`,
	} {
		r := runWith(t, v)
		for name, text := range encodings(v) {
			for _, around := range []string{
				"%s", "before %s after", "x=%s&y=1", "{\"k\":\"%s\"}", "\n%s\n", "\"%s",
				"zz-%s-zz",
			} {
				in := fmt.Sprintf(around, text)
				if !strings.Contains(in, core(name, text, len(v))) {
					t.Fatalf("control: %s is not there", name)
				}
				out := string(r.Scrub([]byte(in), ignore))
				if strings.Contains(out, core(name, text, len(v))) {
					t.Errorf("%q as %s stays: %q", v, name, out)
				}
				if !strings.Contains(out, "secret") {
					t.Errorf("%q as %s left no mark: %q", v, name, out)
				}
			}
		}
	}
}

// A value is found in any case of its letters: hosts and headers are folded on
// their way, by rlp as well.
//
//rlp:holds K11
func TestEveryCaseIsFound(t *testing.T) {
	const v = "B0und-Value/Qwertyuiop=4242"
	r := runWith(t, v)
	folded := []string{strings.ToLower(v), strings.ToUpper(v), "b0und-Value/QWERTYUIOP=4242"}
	for _, f := range folded {
		for name, text := range encodings(f) {
			in := "http://" + text + ".example/"
			if strings.Contains(in, core(name, encodings(v)[name], len(v))) {
				t.Fatalf("control: %s of %q is that of the value itself", name, f)
			}
			if out := string(r.Scrub([]byte(in), ignore)); strings.Contains(out, core(name, text, len(v))) ||
				!strings.Contains(out, "[secret ") {
				t.Errorf("%q as %s stays: %q", f, name, out)
			}
		}
	}
	for _, in := range []string{
		"b0und-value/qwertyuiop", "b0und-value/qwertyuiop-4242",
		"B0und-Value/Qwertyuiop\x1d4242",
	} {
		if out := string(r.Scrub([]byte(in), func(id string) { t.Errorf("%s found in %q", id, in) })); out != in {
			t.Errorf("%q became %q", in, out)
		}
	}
}

func TestMarksTakeExactlyThePlaceOfValues(t *testing.T) {
	r := runWith(t, "correct-horse", "battery/staple")
	for in, want := range map[string]string{
		"a correct-horse b":                                "a [secret runloop/test/s0] b",
		"correct-horsebattery/staple":                      "[secret runloop/test/s0][secret runloop/test/s1]",
		"correct-hors correct-horse":                       "correct-hors [secret runloop/test/s0]",
		"battery%2Fstaple battery%2fstaple.":               "[secret runloop/test/s1] [secret runloop/test/s1].",
		`{"a":"battery\/staple","b":"\u0063orrect-horse"}`: `{"a":"[secret runloop/test/s1]","b":"[secret runloop/test/s0]"}`,
		"%2%2F%%41 \\ \\u12 \\":                            "%2%2F%%41 \\ \\u12 \\",
		"correct-horse%":                                   "[secret runloop/test/s0]%",
	} {
		if got := string(r.Scrub([]byte(in), ignore)); got != want {
			t.Errorf("Scrub(%q) = %q, want %q", in, got, want)
		}
	}
}

// Values that overlap are one, in pieces as well.
func TestOverlappingValuesAreOneMark(t *testing.T) {
	r := runWith(t, "abababab", "babx-babx")
	for in, want := range map[string]string{
		"abababab":         "[secret runloop/test/s0]",
		"-ababababababab-": "-[secret runloop/test/s0]-",
		"abababababx-babx": "[secret runloop/test/s0]",
	} {
		if got := string(r.Scrub([]byte(in), ignore)); got != want {
			t.Errorf("Scrub(%q) = %q", in, got)
		}
		write := r.Stream(ignore)
		var got []byte
		for i := range len(in) {
			got = append(got, write([]byte(in[i:i+1]), false)...)
		}
		if got = append(got, write(nil, true)...); string(got) != want {
			t.Errorf("%q byte by byte: %q", in, got)
		}
	}
}

// What escapes join is found: a value whose base64 is written with escapes.
func TestEscapesJoinEncodings(t *testing.T) {
	r := runWith(t, "??>>??>>")
	for _, in := range []string{
		`Pz8+Pj8\/Pj4=`, `Pz8%2BPj8%2fPj4%3D`, `Pz8%2bPj8%2FPj4`, `Pz8\u002bPj8/Pj4`,
		`3f%33f3e3e3f3f3e3e`,
	} {
		if got := string(r.Scrub([]byte("x "+in), ignore)); !strings.HasPrefix(got, "x [secret runloop/test/s0]") {
			t.Errorf("Scrub(%q) = %q", in, got)
		}
	}
}

// What holds no value is passed on as it is, and not even copied.
func TestTextWithoutValuesIsUntouched(t *testing.T) {
	r := runWith(t, "sk-live-4eC39HqLyjWDarjtT1zdp7dc", "correct-horse")
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "text")
		out := r.Scrub(in, func(id string) { t.Fatalf("%s found", id) })
		if !bytes.Equal(in, out) || len(in) > 0 && &in[0] != &out[0] {
			t.Fatalf("%q became %q", in, out)
		}
	})
}

// However a text is cut into pieces, a stream gives what Scrub gives of it all,
// and holds back no more than it must.
func TestStreamsAreCutAnywhere(t *testing.T) {
	values := []string{"correct-horse", "correct-horse-battery", "ababababab", "line one of it\nline two of it"}
	r := runWith(t, values...)
	var words []string
	for _, v := range values {
		for _, text := range encodings(v) {
			words = append(words, text, text[:len(text)/2])
		}
	}
	words = append(words, " ", "\n", "text", "abab", "%", "\\", "\\u00", "&", "&#", "&#x6", "deadbeef", "+")
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 12).Draw(t, "words"), "")
		write := r.Stream(ignore)
		var got []byte
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "piece")
			got = append(got, write([]byte(rest[:n]), false)...)
			rest = rest[n:]
		}
		got = append(got, write(nil, true)...)
		want := string(r.Scrub([]byte(text), ignore))
		if !sameButEdges(string(got), want) {
			t.Fatalf("%q in pieces gives\n%q, at once\n%q", text, got, want)
		}
	})
}

// sameButEdges allows a stream to have passed on the character in which an
// encoded value began: it holds fewer than eight bits of it.
func sameButEdges(got, want string) bool {
	for got != want {
		i := 0
		for i < len(got) && i < len(want) && got[i] == want[i] {
			i++
		}
		if i == len(got) || classes[got[i]] == 0 || !strings.HasPrefix(want[i:], "[secret ") {
			return false
		}
		rest := strings.TrimLeft(got[i+1:], "\r\n: ")
		if !strings.HasPrefix(rest, "[secret ") {
			return false
		}
		got = got[:i] + rest
	}
	return true
}

func TestStreamsDoNotWait(t *testing.T) {
	write := runWith(t, "sk-live-4eC39HqLyjWDarjtT1zdp7dc").Stream(ignore)
	for _, line := range []string{"compiling 12%\n", "done\n", "Password: ", "a\\b\n", "downloading"} {
		if got := string(write([]byte(line), false)); got != line && got+"%" != line {
			t.Errorf("of %q only %q was passed on", line, got)
		}
	}
	if got := string(write([]byte(" sk-live"), false)); got != " " {
		t.Errorf("the beginning of a value was passed on: %q", got)
	}
	if got := string(write([]byte("ly"), false)); got != "sk-lively" {
		t.Errorf("what is no value is held: %q", got)
	}
}

// A value that is fetched while a stream is open is taken out from then on, of
// what is held as well.
func TestStreamsLearn(t *testing.T) {
	p := memory{}
	first, _ := ParseID("runloop/a/first")
	second, _ := ParseID("runloop/a/second")
	p[first], p[second] = "abcdefgh-first", "abcdef-second"
	r := NewRun(func() (Provider, error) { return p, nil })
	write := r.Stream(ignore)
	if got := string(write([]byte("early abcdef-second "), false)); got != "early abcdef-second " {
		t.Errorf("before any value is known: %q", got)
	}
	if _, err := r.Handle(t.Context(), first.String()); err != nil {
		t.Fatal(err)
	}
	got := string(write([]byte("x abcdef"), false))
	if _, err := r.Handle(t.Context(), second.String()); err != nil {
		t.Fatal(err)
	}
	got += string(write([]byte("-second y"), false)) + string(write(nil, true))
	if got != "x [secret runloop/a/second] y" {
		t.Errorf("got %q", got)
	}
}

func TestMarksNeverSpellAValue(t *testing.T) {
	for _, v := range []string{
		"secret", "runloop/test/s0", "[secret", "test/s0]x", "[secret]{removed}", "removed",
		strings.Repeat("[]{}<>()", 2),
	} {
		r := runWith(t, v)
		out := string(r.Scrub([]byte("x"+v+v+"x "+hex.EncodeToString([]byte(v))), ignore))
		if strings.Contains(out, v) || strings.Contains(out, hex.EncodeToString([]byte(v))) {
			t.Errorf("%q stays in %q", v, out)
		}
	}
}

// lowerLetters is a value as it comes out of the folding of a host's name.
func lowerLetters(value []byte) string {
	out := bytes.Clone(value)
	for i, b := range out {
		if 'A' <= b && b <= 'Z' {
			out[i] = b + 'a' - 'A'
		}
	}
	return string(out)
}

// FuzzScrub: no value survives in any encoding or case, however the text is cut, and
// what is beside it is kept.
func FuzzScrub(f *testing.F) {
	f.Add([]byte("correct-horse"), []byte("before "), []byte(" after"), uint8(3))
	f.Add([]byte("\x00\xff\x00\xff\x00\xff"), []byte("\\"), []byte("%"), uint8(1))
	f.Add([]byte("aaaaaaaa"), []byte("aaa"), []byte("aaaaaaaaaaaa"), uint8(7))
	f.Add([]byte("[secret runloop/test/s0]"), []byte("["), []byte("]"), uint8(2))
	f.Fuzz(func(t *testing.T, value, before, after []byte, cut uint8) {
		if CheckValue(value) != nil || len(value) > 200 {
			return
		}
		r := runWith(t, string(value))
		open := regexp.MustCompile(`(%[0-9a-fA-F]?|\\+|\\(u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?))$`)
		before = open.ReplaceAll(before, nil) // an escape that is not over would take the value's first letters
		for open.Match(before) {
			before = open.ReplaceAll(before, nil)
		}
		forms := encodings(string(value))
		for name, text := range encodings(lowerLetters(value)) {
			forms["lower "+name] = text
		}
		for name, text := range forms {
			in := string(before) + text + string(after)
			whole := string(r.Scrub([]byte(in), ignore))
			write := r.Stream(ignore)
			var cuts []byte
			for rest := in; rest != ""; {
				n := min(len(rest), int(cut)+1)
				cuts = append(cuts, write([]byte(rest[:n]), false)...)
				rest = rest[n:]
			}
			cuts = append(cuts, write(nil, true)...)
			for _, out := range []string{whole, string(cuts)} {
				if c := core(name, text, len(value)); strings.Contains(out, c) {
					t.Fatalf("%q as %s stays in %q", value, name, out)
				}
			}
		}
	})
}
