package tomlfile

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"runloop.dev/rlp/internal/base/strictjson"
)

// A place is found in time that does not grow with the square of a line: all of
// a file may be one.
func TestLongLines(t *testing.T) {
	list := "[" + strings.Repeat("1,", 20_000) + "1]"
	nested := strings.Repeat(`{"a":`, 30) + list + strings.Repeat("}", 30)
	for name, d := range map[string]*document{
		"toml": {data: []byte("a = " + list)},
		"json": {data: []byte(`{"a":` + nested + "}")},
	} {
		d.indexLines()
		var err error
		if name == "toml" {
			_, err = d.build()
		} else {
			err = strictjson.Read(string(d.data), func(r *strictjson.Reader) error { return d.object(r, &Table{}) })
		}
		if most := 40 * len(d.data); err != nil || d.walked > most {
			t.Errorf("%s: %d bytes looked at, want at most %d; %v", name, d.walked, most, err)
		}
	}
}

// A place is the same wherever the one before it was.
func TestPlacesInAnyOrder(t *testing.T) {
	d := &document{data: []byte("aé\nöß = \"日本\"\n\n\U0001f600x = [1, 2]\r\nlast")}
	d.indexLines()
	for range 2000 {
		off := rand.IntN(len(d.data) + 1)
		start := off
		for start > 0 && start < len(d.data) && !utf8.RuneStart(d.data[start]) {
			start--
		}
		before := string(d.data[:start])
		line := strings.Count(before, "\n") + 1
		column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
		if p := d.pos(off); p.Line != line || p.Column != column {
			t.Fatalf("%d: %v, want %d:%d", off, p, line, column)
		}
	}
}
