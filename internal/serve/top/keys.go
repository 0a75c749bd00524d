package top

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Key is one that was pressed: by its name, or the text that it types.
type Key struct{ Name, Text string }

// readKeys tells of each key that in is given, until it ends.
func readKeys(in io.Reader, pressed func(Key)) error {
	buf := make([]byte, 256)
	for n := 0; ; {
		more, err := in.Read(buf[n:])
		n += more
		if err != nil {
			return err
		}
		rest := decode(buf[:n], pressed)
		n = copy(buf, rest)
	}
}

// decode tells of the keys in b, and returns what is the beginning of one more. A
// terminal writes the bytes of one key at once, so an escape that ends b is the
// key of that name.
func decode(b []byte, pressed func(Key)) (rest []byte) {
	for len(b) > 0 {
		if b[0] == 0x1b && len(b) > 1 && (b[1] == '[' || b[1] == 'O') {
			var name string
			name, b = sequence(b[2:])
			if name != "" {
				pressed(Key{Name: name})
			}
			continue
		}
		if !utf8.FullRune(b) {
			return b
		}
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		if name, is := names[r]; is {
			pressed(Key{Name: name})
		} else if r != utf8.RuneError && unicode.IsPrint(r) {
			pressed(Key{Name: string(r), Text: string(r)})
		}
	}
	return nil
}

var names = map[rune]string{
	0x03: "ctrl+c", '\r': "enter", '\n': "enter", 0x1b: "esc", 0x7f: "backspace",
	0x08: "backspace",
}

// sequence is the key of a control sequence behind its first two bytes, "" for one
// that nothing is done for.
func sequence(b []byte) (name string, rest []byte) {
	end := strings.IndexFunc(string(b), func(r rune) bool { return r >= 0x40 && r <= 0x7e })
	if end < 0 {
		return "", nil
	}
	switch string(b[:end+1]) {
	case "A":
		name = "up"
	case "B":
		name = "down"
	}
	return name, b[end+1:]
}
