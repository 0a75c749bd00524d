// Package strictjson reads JSON that somebody else wrote. Of all that calls itself
// JSON it takes what every reader understands alike, and refuses the rest with the
// place of what is wrong:
//
//   - one document in UTF-8, without a byte order mark and with nothing behind it;
//   - each key of an object once, without U+0000, spelled exactly as a struct has
//     it, and known to it;
//   - no half of a surrogate pair, written as an escape;
//   - at most [MaxDepth] levels of lists and objects and [MaxValues] values;
//   - numbers of at most [MaxNumber] characters that 64 bits of floating point hold.
//
// It is the only package that decodes the JSON of others. What a caller must take
// beyond these rules is an [Option].
package strictjson

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of every document.
const (
	MaxDepth  = 64
	MaxValues = 1 << 20
	MaxNumber = 128 // characters
)

// An Option takes what the rules refuse.
type Option uint8

// Options.
const (
	// UnknownFields takes keys that a struct does not have, of a peer whose answers
	// may say more than is asked.
	UnknownFields Option = 1 << iota
	// Enclosing takes 16 levels more, for what encloses documents of MaxDepth
	// levels: a message its arguments, a report its result.
	Enclosing
	// Vectors takes 8 times as many values, for lists of a model's numbers.
	Vectors
)

const enclosingDepth = 16

// A Reader reads a document from its beginning to its end. Each method passes over
// the value that comes next, or says what is wrong with it.
type Reader struct {
	text   string
	at     int
	keyAt  int // where the key began that was read last
	depth  int32
	most   int32 // levels
	values int32 // that may follow
}

func newReader(text string, options []Option) *Reader {
	r := &Reader{text: text, most: MaxDepth, values: MaxValues}
	if has(options, Enclosing) {
		r.most += enclosingDepth
	}
	if has(options, Vectors) {
		r.values *= 8
	}
	return r
}

func has(options []Option, o Option) bool {
	return len(options) > 0 && options[0]&o != 0
}

// Object reads text, which is one object. member reads the value of a key, which is
// a part of text.
func Object(text string, member func(r *Reader, key string) error, options ...Option) error {
	r := newReader(text, options)
	if err := r.encoding(); err != nil {
		return err
	}
	if err := r.Members(member); err != nil {
		return err
	}
	return r.end()
}

// Read reads text, which is one document: value reads it.
func Read(text string, value func(r *Reader) error, options ...Option) error {
	r := newReader(text, options)
	if err := r.encoding(); err != nil {
		return err
	}
	if err := value(r); err != nil {
		return err
	}
	return r.end()
}

// encoding refuses what is no text.
func (r *Reader) encoding() error {
	if strings.HasPrefix(r.text, "\ufeff") {
		return r.wrong("begins with a byte order mark (EF BB BF), which is no JSON; write UTF-8 without one")
	}
	if utf8.ValidString(r.text) {
		return nil
	}
	for r.at < len(r.text) {
		c, n := utf8.DecodeRuneInString(r.text[r.at:])
		if c == utf8.RuneError && n == 1 {
			break
		}
		r.at += n
	}
	return r.wrong("not UTF-8")
}

// end refuses what stands behind the document.
func (r *Reader) end() error {
	if r.space(); r.at < len(r.text) {
		return r.wrong("not JSON: something stands behind the end of the document")
	}
	return nil
}

// Offset is where the next value begins, in bytes.
func (r *Reader) Offset() int {
	r.space()
	return r.at
}

// KeyOffset is where the key began that was read last.
func (r *Reader) KeyOffset() int { return r.keyAt }

// Kind tells what the next value is: '{', '[', '"', '0' for a number, 't' for true and
// false, 'n' for null. Any other byte begins no value.
func (r *Reader) Kind() byte {
	r.space()
	if r.at == len(r.text) {
		return ' '
	}
	switch c := r.text[r.at]; c {
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return '0'
	case 'f':
		return 't'
	default:
		return c
	}
}

// Members reads an object: member reads the value of each key, which is a part of
// the text.
func (r *Reader) Members(member func(r *Reader, key string) error) error {
	object := r.Offset()
	if err := r.open('{', "an object is wanted"); err != nil || r.close('}') {
		return err
	}
	list, set, isNew := make([]string, 0, 8), map[string]struct{}(nil), false
	for {
		key, err := r.key()
		if err == nil {
			err = r.count()
		}
		if err != nil {
			return err
		}
		if list, set, isNew = noted(list, set, key); !isNew {
			return r.twice(object, key)
		}
		from := r.at
		if err := member(r, key); err != nil {
			return r.under(Shown(key), from, err)
		}
		if more, err := r.more('}'); !more {
			return err
		}
	}
}

// Items reads a list: item reads each value of it, the first of which is 0.
func (r *Reader) Items(item func(r *Reader, i int) error) error {
	if err := r.open('[', "a list is wanted"); err != nil || r.close(']') {
		return err
	}
	for i := 0; ; i++ {
		from := r.at
		err := r.count()
		if err == nil {
			err = item(r, i)
		}
		if err != nil {
			return r.under(index(i), from, err)
		}
		if more, err := r.more(']'); !more {
			return err
		}
	}
}

func (r *Reader) key() (string, error) {
	r.space()
	r.keyAt = r.at
	if r.at == len(r.text) || r.text[r.at] != '"' {
		return "", r.syntax("a key in quotes is wanted")
	}
	key, escaped, err := r.quoted(true)
	switch {
	case err != nil:
		return "", err
	case escaped && strings.IndexByte(key, 0) >= 0:
		return "", r.wrongAt(r.keyAt, "a key with U+0000, which other readers cut short")
	case !r.eat(':'):
		return "", r.syntax("a colon is wanted behind a key")
	}
	return key, nil
}

// twice says where the key was that is given again.
func (r *Reader) twice(object int, key string) error {
	first := &Reader{text: r.text, at: object, most: r.most, values: 8 * MaxValues}
	_ = first.Members(func(f *Reader, k string) error {
		if k == key {
			return r.wrong("found") // which ends the search
		}
		return f.Any()
	})
	line, column := place(r.text, first.keyAt)
	where := "column " + strconv.Itoa(column)
	if again, _ := place(r.text, r.keyAt); again > line {
		where = placeText(line, column)
	}
	return Under(Shown(key), r.wrongAt(r.keyAt, "given twice, first at "+where+"; keep one"))
}

func (r *Reader) open(c byte, what string) error {
	if !r.eat(c) {
		return r.wanted(what)
	}
	if r.depth++; r.depth > r.most {
		return r.tooDeep()
	}
	return nil
}

func (r *Reader) close(c byte) bool {
	if !r.eat(c) {
		return false
	}
	r.depth--
	return true
}

// more passes over what follows a part: a comma, or the end of all.
func (r *Reader) more(end byte) (bool, error) {
	switch {
	case r.eat(','):
		return true, nil
	case r.close(end):
		return false, nil
	}
	return false, r.syntax("a comma or " + string(end) + " is wanted")
}

func (r *Reader) count() error {
	if r.values--; r.values < 0 {
		return r.tooMany()
	}
	return nil
}

// Any passes over a value of any kind and holds it to the rules.
func (r *Reader) Any() error {
	switch c := r.Kind(); c {
	case '{':
		return r.Members(func(r *Reader, _ string) error { return r.Any() })
	case '[':
		return r.Items(func(r *Reader, _ int) error { return r.Any() })
	case '"':
		_, _, err := r.quoted(false)
		return err
	case '0':
		_, err := r.Number()
		return err
	case 't':
		_, err := r.Bool()
		return err
	default:
		if c == 'n' && r.Null() {
			return nil
		}
		return r.syntax("a value is wanted")
	}
}

// Raw passes over a value and returns it as it stands there. It is a document of
// its own, which may have MaxDepth levels.
func (r *Reader) Raw() (string, error) {
	from, depth := r.Offset(), r.depth
	r.depth = r.most - MaxDepth
	err := r.Any()
	r.depth = depth
	return r.text[from:r.at], err
}

// noted adds a key to those of an object, which are in list, or in set when there are
// many, and reports whether it is new. The list stays on the caller's stack.
func noted(list []string, set map[string]struct{}, key string) ([]string, map[string]struct{}, bool) {
	const few = 32
	if set == nil && len(list) < few {
		return append(list, key), nil, !slices.Contains(list, key)
	}
	if set == nil {
		set = make(map[string]struct{}, 2*few)
		for _, k := range list {
			set[k] = struct{}{}
		}
	}
	_, twice := set[key]
	set[key] = struct{}{}
	return list, set, !twice
}
