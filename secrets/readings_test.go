package secrets

import (
	"context"
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"
)

const mark0, mark1 = "[secret runloop/test/s0]", "[secret runloop/test/s1]"

// Each text becomes exactly what stands beside it, at once and byte by byte.
func TestReadings(t *testing.T) {
	for name, c := range map[string]struct {
		values []string
		texts  map[string]string
	}{
		"blanks around a value": {[]string{"  secret-value\n"}, map[string]string{"a secret-value b": "a " + mark0 + " b"}},
		"six letters and a line": {[]string{"abcdef\n"}, map[string]string{
			"xabcdefx": "x" + mark0 + "x", "abcde": "abcde",
		}},
		"blanks that are the value": {[]string{"  ab  "}, map[string]string{
			"x  ab  y": "x" + mark0 + "y",
			"x ab y":   "x ab y",
		}},
		"lines": {
			[]string{"-----BEGIN IT-----\nexactly12ch!\nonly11chars\n  indented and long  \n-----END IT-----"},
			map[string]string{
				"exactly12ch!": mark0, "only11chars": "only11chars", "x indented and long x": "x " + mark0 + " x",
				"-----BEGIN IT-----": "-----BEGIN IT-----",
			},
		},
		"letters have cases, signs have none": {[]string{"a{b|c}d@z`", "zzzzzz"}, map[string]string{
			"A{B|C}D@Z`": mark0, "a[b|c]d@z`": "a[b|c]d@z`", "a{b\\c}d@z`": "a{b\\c}d@z`", "a{b|c}d`z@": "a{b|c}d`z@",
			"ZZZZZZ": mark1, "zzzZZZ": mark1, "zzzzz": "zzzzz",
		}},
		"a value within another's beginning": {[]string{"xxabcdef-more", "abcdef"}, map[string]string{
			"xxabcdefzz": "xx" + mark1 + "zz", "xxabcdef-more": mark0, "xxabcdef-mor": "xx" + mark1 + "-mor",
			"xxabcdef-mor.xxabcdef-more": "xx" + mark1 + "-mor." + mark0,
		}},
		"a value that begins another": {[]string{"abcdefghij", "cdefgh"}, map[string]string{
			"abcdefghij": mark0, "abcdefghi": "ab" + mark1 + "i", "-abcdefghij-cdefgh-": "-" + mark0 + "-" + mark1 + "-",
		}},
		"two that begin together": {[]string{"abcdefghij", "abcdef"}, map[string]string{
			"-abcdefghij-": "-" + mark1 + "-", "-abcdefghi-": "-" + mark1 + "ghi-",
		}},
		"an escape that is none ends a value": {[]string{"ab/cde%4", "Acorrect"}, map[string]string{
			"ab%2Fcde%4": mark0, "ab%2Fcde%4 tail": mark0 + " tail", "x ab%2Fcde%4": "x " + mark0, "%%41correct": "%" + mark1,
			"%4%41correct.": "%4" + mark1 + ".",
		}},
		"bytes by their number": {[]string{"correct-horse", "ab\x1bcdef"}, map[string]string{
			`x\x63orrect-horse`: "x" + mark0, `\x63\x6f\x72\x72ect-horse.`: mark0 + ".", `corr\x65ct-horse`: mark0,
			`\x6zorrect-horse`: `\x6zorrect-horse`,
			`ab\ecdef`:         mark1, `ab\x1bcdef`: mark1, `ab\u001bcdef`: mark1, `ab\033cdef`: `ab\033cdef`,
		}},
		"a half before what is no escape": {[]string{"\ufffd\\qabcd", "%4xbcde/f"}, map[string]string{
			`\ud83d\qabcd`: mark0, `x%4xbcde%2Ff.`: "x" + mark1 + ".", `%41x%4xbcde%2Ff.`: "%41x" + mark1 + ".",
			`%4%4xbcde%2ff`: "%4" + mark1,
		}},
		"entities": {[]string{"a&b<c>d\"e'", "correct-horse", "😀secret-x"}, map[string]string{
			"x a&amp;b&lt;c&gt;d&quot;e&apos; y": "x " + mark0 + " y", "a&#38;b<c&#x3E;d&#34;e&#39;": mark0,
			"&&#99;orrect&#45;horse;": "&" + mark1 + ";", "&am&#x63;orrect-horse": "&am" + mark1,
			"&#0000000000099;orrect-horse": mark1, "&#00000000000099;orrect-horse": "&#00000000000099;orrect-horse",
			"&#99orrect-horse": "&#99orrect-horse", "&#;correct-horse": "&#;" + mark1, "&#x;correct-horse": "&#x;" + mark1,
			"&#x1F600;secret-x": "[secret runloop/test/s2]", "&#x110000;secret-x": "&#x110000;secret-x",
			"&copy;correct-horse": "&copy;" + mark1, "a=1&correct-horse=2": "a=1&" + mark1 + "=2", "&#": "&#", "&": "&",
		}},
		"what is no escape": {[]string{"abqcdef"}, map[string]string{
			`ab\qcdef`: `ab\qcdef`, `abq\cdef`: `abq\cdef`,
			`\abqcdef`: `\` + mark0,
		}},
		"halves of characters": {[]string{"😀secret-x", "\ufffdabc/def"}, map[string]string{
			`\ud83d\ude00secret-x`: mark0, `\uD83D\uDE00secret-x.`: mark0 + ".", `\ud83d\ud83d\ude00secret-x`: `\ud83d` + mark0,
			`\ud83dz\ude00secret-x`: `\ud83dz\ude00secret-x`, `\ud83d\u0041\ude00secret-x`: `\ud83d\u0041\ude00secret-x`,
			`\ud83d\x41\ude00secret-x`: `\ud83d\x41\ude00secret-x`,
			`\ud83d\n\ude00secret-x`:   `\ud83d\n\ude00secret-x`, `\ud83d\q\ude00secret-x`: `\ud83d\q\ude00secret-x`,
			`\ude00secret-x`: `\ude00secret-x`, `\ude00\ud83dsecret-x`: `\ude00\ud83dsecret-x`,
			`\ud83dabc\/def`: mark1, `\ude00abc\/def`: mark1, `\ud83d\u0061bc\/def`: mark1, `\ud83d\x61bc\/def`: mark1,
			`\ud83da\u0062c\/def`: mark1, `\ufffdabc\/def`: mark1,
			`x\ud83d\ude00 yz \ude00abc\/def`: `x\ud83d\ude00 yz ` + mark1,
		}},
		"the first and last halves": {[]string{"\U00010000bcdef\U0010ffff", "\U000103ff\ue000\U0010fc00"}, map[string]string{
			`\ud800\udc00bcdef\udbff\udfff`: mark0, `\ud800\udfff\ue000\udbff\udc00`: mark1,
			`\ud800\udfff\ud7ff\udbff\udc00`: `\ud800\udfff\ud7ff\udbff\udc00`,
		}},
		"a half before what is none": {[]string{"\ufffd\ue000secret", "\ufffd\U0001f600secret"}, map[string]string{
			`\ud83d\ue000secret`: mark0, `\ud83d\ud83d\ude00secret`: mark1, `\udfff\ud83d\ude00secret`: mark1,
		}},
		"hex that does not belong together": {[]string{"abcdef"}, map[string]string{
			"616263646566": mark0, "61:62 63-64\n65\r\n66": mark0, "7616263646566": "7" + mark0, "61626364656": "61626364656",
			"6z16263646566": "6z16263646566", "616263.646566": "616263.646566", "6.16263646566": "6.16263646566",
			"61.62.63.64.65.66": "61.62.63.64.65.66", "61x62x63x64x65x66": "61x62x63x64x65x66", "616263z646566": "616263z646566",
			"6162636z4656 6": "6162636z4656 6", "61626z3646566": "61626z3646566",
		}},
		"signs that are no characters": {[]string{"ab\xffcdef"}, map[string]string{
			"fedc\ufffdba": "fedc\ufffdba", "fedc\xffba": mark0, "ab\xffcdef": mark0, "ab\ufffdcdef": "ab\ufffdcdef",
		}},
		"a plus for a space": {[]string{"two words", "one+word"}, map[string]string{
			"two+words": mark0, "two%20words": mark0, "two%2Bwords": "two%2Bwords", "one+word": mark1, "one%2bword": mark1,
			"one%20word": "one%20word",
		}},
	} {
		r := runWith(t, c.values...)
		for in, want := range c.texts {
			if got := string(r.Scrub([]byte(in), ignore)); got != want {
				t.Errorf("%s: %q became %q, want %q", name, in, got, want)
			}
			if got := inPieces(r, in); got != want && !sameButEdges(got, want) {
				t.Errorf("%s: %q byte by byte became %q, want %q", name, in, got, want)
			}
		}
	}
}

// inPieces is what a stream makes of a text that comes byte by byte.
func inPieces(r *Run, text string) string {
	write := r.Stream(ignore)
	var got []byte
	for i := range len(text) {
		got = append(got, write([]byte(text[i:i+1]), false)...)
	}
	return string(append(got, write(nil, true)...))
}

// Base64 whose characters do not stand together is not read together, at any
// alignment.
func TestBase64ThatIsApart(t *testing.T) {
	const v = "correct-horse-battery-staple-and-more"
	r := runWith(t, v, "zyxwvu") // of which few characters in a row can be one
	for pad := range 3 {
		whole := base64.StdEncoding.EncodeToString([]byte("!!!"[:pad] + v))
		if got := string(r.Scrub([]byte(whole), ignore)); !strings.Contains(got, mark0) {
			t.Fatalf("control: %q", got)
		}
		first, last := (8*pad+5)/6+1, 8*(pad+len(v))/6-1
		for i := first; i < last; i++ {
			for _, between := range []string{".", " ", "=", "x y"} {
				in := whole[:i] + between + whole[i:]
				if got := string(r.Scrub([]byte(in), ignore)); got != in {
					t.Errorf("%q became %q", in, got)
				}
			}
			if in := whole[:i] + "\r\n" + whole[i:]; !strings.Contains(string(r.Scrub([]byte(in), ignore)), mark0) {
				t.Errorf("%q stays", in)
			}
		}
		// What stood before a gap is no part of what stands behind it.
		for i := 1; i < 4; i++ {
			for _, before := range []string{"", "AAAAAAAA", "AAAAAAAAA", "AAAAAAAAAA", "AAAAAAAAAAA"} {
				in := before + whole[:i] + "." + whole[i:]
				if got := string(r.Scrub([]byte(in), ignore)); pad == 0 && got != in {
					t.Errorf("%q became %q", in, got)
				}
			}
		}
	}
}

// However long ago the last escape was, the next one is read, and what is no
// beginning of a value is passed on at once.
func TestEscapesFarApart(t *testing.T) {
	r := runWith(t, "correct-horse", "😀secret-x")
	for n := range 160 {
		fill := strings.Repeat("-", n)
		for _, in := range []string{
			"%63orrect-horse", `\u0063orrect-horse`, `\ud83d\ude00secret-x`, "correct%2Dhorse",
			`correct-\u0068orse`,
		} {
			for _, open := range []string{"%41", `\u0041`} {
				text := open + fill + in
				want := open + fill + mark0
				if strings.HasSuffix(in, "x") {
					want = open + fill + mark1
				}
				if got := string(r.Scrub([]byte(text), ignore)); got != want {
					t.Fatalf("%q became %q", text, got)
				}
				if got := inPieces(r, text); got != want {
					t.Fatalf("%q byte by byte became %q", text, got)
				}
			}
		}
		write := r.Stream(ignore)
		got := string(write([]byte("%41"+fill+"correct-"), false))
		for range 4 {
			got += string(write([]byte(strings.Repeat(".", 40)), false))
		}
		if want := "%41" + fill + "correct-" + strings.Repeat(".", 160); got != want {
			t.Fatalf("behind %d bytes %d of %d were passed on", n, len(got), len(want))
		}
	}
}

// Every encoding of every value is found byte by byte as it is at once.
func TestEveryEncodingInPieces(t *testing.T) {
	for _, v := range []string{
		"emoji 😀 inside", "p@ss w/rd+\"quo\\te\"&é=%41", "\x00\x01\xfe\xff binary \x80",
		"line one of it\nline two of it",
	} {
		r := runWith(t, v)
		for name, text := range encodings(v) {
			in := "before " + text + " after"
			want := string(r.Scrub([]byte(in), ignore))
			if got := inPieces(r, in); !sameButEdges(got, want) {
				t.Errorf("%q as %s: %q, at once %q", v, name, got, want)
			}
		}
	}
}

// Each secret that is found is told once, by a stream as well, and of each text
// its own.
func TestWhatIsFoundIsTold(t *testing.T) {
	r := runWith(t, "correct-horse", "battery-staple")
	var told []string
	tell := func(id string) { told = append(told, id) }
	want := func(what, ids string) {
		t.Helper()
		if got := strings.Join(told, " "); got != ids {
			t.Errorf("%s: told %q", what, got)
		}
		told = nil
	}
	r.Scrub([]byte("correct-horse correct-horse"), tell)
	want("one value twice", "runloop/test/s0")
	r.Scrub([]byte("battery-staple"), tell)
	want("the other", "runloop/test/s1")
	r.Scrub(nil, tell)
	want("nothing", "")
	write := r.Stream(tell)
	write([]byte("correct-horse "), false)
	want("a stream", "runloop/test/s0")
	write([]byte("and more "), false)
	want("nothing more", "")
	write([]byte("battery-staple"), true)
	want("its end", "runloop/test/s1")
	if got := patternsOf([]byte("abc")); got != nil || newMatcher([]secretValue{{id: "x", value: []byte("abc")}}) != nil {
		t.Errorf("what is too short is looked for: %q", got)
	}
}

// A run that has ended knows nothing, and gives nothing on.
func TestNothingIsKnownAfterTheEnd(t *testing.T) {
	top, child, late := runWith(t, "correct-horse"), runWith(t, "battery-staple"), runWith(t)
	child.Under(top)
	above := child.above[0].value
	if !child.Knows() || string(above) != "correct-horse" {
		t.Fatalf("control: %q", above)
	}
	child.Close()
	if child.Knows() || scrubbed(child, "correct-horse battery-staple") != "correct-horse battery-staple" ||
		strings.Trim(string(above), "\x00") != "" {
		t.Errorf("after its end it knows %q", above)
	}
	late.Under(child)
	if late.Knows() {
		t.Error("a run that has ended gives on what it knew")
	}
	if err := child.Hear(t.Context(), "h:443", []string{"runloop/test/s9"}); err != nil {
		t.Errorf("what is heard after the end: %v", err)
	}
	if err := late.Sending("runloop/a/b", "h:443"); err != nil {
		t.Errorf("nobody remembers: %v", err)
	}
	if v, err := late.Reveal(t.Context(), "runloop/test/s9"); err == nil || v != "" {
		t.Errorf("revealed %q", v)
	}
}

// keeping hands out the very bytes that it holds.
type keeping struct {
	memory
	value []byte
	gets  int
}

func (k *keeping) Get(context.Context, ID) ([]byte, error) { k.gets++; return k.value, nil }

// What cannot be used is cleared, asked for once, and by ids alone.
func TestWhatIsFetched(t *testing.T) {
	r, p, _ := others(t, filepath.Join(t.TempDir(), "secrets"))
	for range 3 {
		if err := r.Hear(t.Context(), "h:443", []string{"runloop/a/gone"}); err != nil {
			t.Fatal(err)
		}
	}
	if p.gets != 1 {
		t.Errorf("what is not there was fetched %d times", p.gets)
	}
	for _, id := range []string{"", "a/b", "runloop//"} {
		if _, err := r.Handle(t.Context(), id); err == nil || p.gets != 1 {
			t.Errorf("%q: %v, fetched %d", id, err, p.gets)
		}
	}
	if _, err := r.Handle(t.Context(), "runloop/a/b"); err != nil {
		t.Fatal(err)
	}
	if err := r.Sending("runloop/a/b", "h:443"); err != nil {
		t.Fatal(err)
	}
	if err := r.Hear(t.Context(), "h:443", nil); err != nil || scrubbed(r, theirs) != "[secret runloop/a/b]" ||
		p.gets != 2 {
		t.Errorf("of a secret that it has a handle of: %q, %v, fetched %d", scrubbed(r, theirs), err, p.gets)
	}
	short := &keeping{value: []byte("12345")}
	bad := NewRun(func() (Provider, error) { return short, nil })
	if _, err := bad.Handle(t.Context(), "runloop/a/b"); err == nil || string(short.value) != "\x00\x00\x00\x00\x00" {
		t.Errorf("a value that cannot be used stays: %q, %v", short.value, err)
	}
	if h, err := bad.Handle(t.Context(), "runloop/a/b"); err == nil || h != "" || short.gets != 2 {
		t.Errorf("%q, %v", h, err)
	}
}
