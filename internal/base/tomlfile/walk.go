package tomlfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Walk reads values out of a document and collects everything that is wrong
// on the way, so that one reading shows an operator all of it. Its getters
// report whether the key was there with the right type; a wrong type is an
// error and never "not there".
type Walk struct {
	errs []*Error
}

// Errorf records an error. Hint may be empty.
func (w *Walk) Errorf(pos Pos, hint, format string, args ...any) {
	w.errs = append(w.errs, &Error{Pos: pos, Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// Errors returns what was recorded, in the order of recording.
func (w *Walk) Errors() []*Error { return w.errs }

// Err returns nil, or one error that wraps every [*Error] recorded.
func (w *Walk) Err() error {
	all := make([]error, len(w.errs))
	for i, e := range w.errs {
		all[i] = e
	}
	return errors.Join(all...)
}

// Known records an error for every key of t that is not among keys.
func (w *Walk) Known(t *Table, keys ...string) {
	if t == nil {
		return
	}
	for _, e := range t.Entries {
		if !slices.Contains(keys, e.Key) {
			w.Errorf(e.Pos, Nearest(e.Key, keys), "unknown key %s", strconv.Quote(e.Key))
		}
	}
}

// Need records an error for every one of keys that t lacks.
func (w *Walk) Need(t *Table, keys ...string) {
	for _, k := range keys {
		if _, ok := t.Get(k); !ok {
			w.Errorf(t.Pos, "", "the key %s is missing", strconv.Quote(k))
		}
	}
}

// Get returns the value of a key if it has the kind wanted.
func (w *Walk) Get(t *Table, key string, want Kind) (*Value, bool) {
	e, ok := t.Get(key)
	if !ok || !w.Is(&e.Value, key, want) {
		return nil, false
	}
	return &e.Value, true
}

// Is reports whether a value has the kind wanted and records an error under the
// name of its key if not.
func (w *Walk) Is(v *Value, key string, want Kind) bool {
	if v.Kind == want {
		return true
	}
	w.Errorf(v.Pos, "", "%s must be %s, not %s", key, want, v.Kind)
	return false
}

// String returns the string at a key.
func (w *Walk) String(t *Table, key string) (string, bool) {
	v, ok := w.Get(t, key, String)
	if !ok {
		return "", false
	}
	return v.Str, true
}

// Bool returns the boolean at a key.
func (w *Walk) Bool(t *Table, key string) (value, ok bool) {
	v, ok := w.Get(t, key, Bool)
	if !ok {
		return false, false
	}
	return v.Bool, true
}

// Int returns the integer at a key. A decimal number is not one, whatever its
// value.
func (w *Walk) Int(t *Table, key string) (int64, bool) {
	v, ok := w.Get(t, key, Integer)
	if !ok {
		return 0, false
	}
	return v.Int, true
}

// Number returns the integer or decimal number at a key.
func (w *Walk) Number(t *Table, key string) (float64, bool) {
	e, ok := t.Get(key)
	if !ok {
		return 0, false
	}
	if e.Value.Kind == Integer {
		return float64(e.Value.Int), true
	}
	if !w.Is(&e.Value, key, Float) {
		return 0, false
	}
	return e.Value.Float, true
}

// Strings returns the strings of the array at a key. The second result is
// false, too, if one of them is no string.
func (w *Walk) Strings(t *Table, key string) ([]string, bool) {
	v, ok := w.Get(t, key, Array)
	if !ok {
		return nil, false
	}
	list := make([]string, 0, len(v.Items))
	for i := range v.Items {
		if !w.Is(&v.Items[i], key+"["+strconv.Itoa(i)+"]", String) {
			ok = false
			continue
		}
		list = append(list, v.Items[i].Str)
	}
	return list, ok
}

// Table returns the table at a key.
func (w *Walk) Table(t *Table, key string) (*Table, bool) {
	v, ok := w.Get(t, key, TableKind)
	if !ok {
		return nil, false
	}
	return v.Table, true
}

// Tables returns the tables of the array at a key, [[key]] in a file.
func (w *Walk) Tables(t *Table, key string) ([]*Table, bool) {
	v, ok := w.Get(t, key, Array)
	if !ok {
		return nil, false
	}
	var list []*Table
	for i := range v.Items {
		if !w.Is(&v.Items[i], key+"["+strconv.Itoa(i)+"]", TableKind) {
			ok = false
			continue
		}
		list = append(list, v.Items[i].Table)
	}
	return list, ok
}

// Nearest returns the hint for a word that is not among valid: the same word in
// another case, the nearest one by spelling, or the list of them if it is short.
func Nearest(word string, valid []string) string {
	best := Near(word, valid)
	switch {
	case best != "" && strings.EqualFold(best, word):
		return fmt.Sprintf("keys are matched to the letter: write %q", best)
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(valid) > 0 && len(valid) <= 16 {
		return "one of " + strings.Join(valid, ", ")
	}
	return ""
}

// Near is the word of valid that word was most likely meant to be; "": none is near.
func Near(word string, valid []string) string {
	best, distance := "", len(word)/3+1
	for _, v := range valid {
		if strings.EqualFold(v, word) {
			return v
		}
		if d := editDistance(word, v); d <= distance && (best == "" || d < distance) {
			best, distance = v, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbours between two words. Long words are not compared.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return len(a) + len(b)
	}
	var before, last, row [65]int
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
