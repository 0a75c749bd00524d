package secrets

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// A matcher knows values: one automaton that says of each byte of a text
// whether a value ends there, and how much of one may have begun. Letters are
// one whatever their case: names of hosts and of headers are folded on their
// way, and what comes of it still tells the value.
type matcher struct {
	class [256]uint16 // of each byte, one for both cases of a letter; 0 is in no value
	width int         // how many classes
	first [256]bool   // a value begins with this byte
	next  []int32     // [state*width + class]
	depth []int32     // how many bytes of a value a state has seen
	out   []int32     // the length of the longest value that ends at a state; 0: none does
	owner []int32     // whose that is
	marks []string    // what takes a value's place, by owner
	ids   []string    // by owner
	least int         // the length of the shortest value
	ring  int         // a power of two that no value is longer than
	space bool        // a value holds a space
}

// A secretValue is a value and the secret that it is of.
type secretValue struct {
	id     string
	value  []byte
	hidden bool // whose mark does not name the id
}

// newMatcher makes the automaton of what has to be found. It is nil when there
// is nothing.
func newMatcher(values []secretValue) *matcher {
	m := &matcher{width: 1}
	type pattern struct {
		text  []byte
		owner int32
	}
	var patterns []pattern
	var words []string
	for _, v := range values {
		m.ids = append(m.ids, v.id)
		if words = append(words, "secret "+v.id); v.hidden {
			words[len(words)-1] = "secret"
		}
		for _, p := range patternsOf(v.value) {
			for _, text := range directions(p) {
				patterns = append(patterns, pattern{text, int32(len(m.ids) - 1)})
			}
		}
	}
	if len(patterns) == 0 {
		return nil
	}
	longest := 0
	m.least = len(patterns[0].text)
	for _, p := range patterns {
		for _, b := range cases(p.text[0]) {
			m.first[b] = true
		}
		longest, m.least = max(longest, len(p.text)), min(m.least, len(p.text))
		for _, b := range p.text {
			if m.class[b] == 0 {
				for _, b := range cases(b) {
					m.class[b] = uint16(m.width)
				}
				m.width++
			}
			m.space = m.space || b == ' '
		}
	}
	m.state(0)
	for _, p := range patterns {
		m.add(p.text, p.owner)
	}
	m.link()
	for m.ring = 1; m.ring <= longest; m.ring *= 2 {
	}
	m.choose(words)
	return m
}

// cases are both cases of a letter, and twice any other byte. Only the letters
// of ASCII have cases where texts are bytes.
func cases(b byte) [2]byte {
	if lower := b | 0x20; lower >= 'a' && lower <= 'z' {
		return [2]byte{lower, lower &^ 0x20}
	}
	return [2]byte{b, b}
}

// patternsOf is what of a value must not be seen: the value, and each of its
// lines, since programs print line by line.
func patternsOf(value []byte) [][]byte {
	whole := bytes.TrimSpace(value)
	if len(whole) < MinValue {
		whole = value
	}
	if len(whole) < MinValue {
		return nil
	}
	list := [][]byte{whole}
	const leastLine = 12 // a shorter line of a longer value may be anything
	for line := range bytes.Lines(whole) {
		line = bytes.TrimSpace(line)
		if len(line) >= leastLine && !bytes.HasPrefix(line, []byte("-----")) {
			list = append(list, line)
		}
	}
	return list
}

// directions are a text and what it is backwards: by bytes and by characters.
func directions(text []byte) [][]byte {
	back := slices.Clone(text)
	slices.Reverse(back)
	list := [][]byte{text, back}
	if runes := []rune(string(text)); utf8.Valid(text) {
		slices.Reverse(runes)
		list = append(list, []byte(string(runes)))
	}
	return list
}

// state adds a state that has seen depth bytes.
func (m *matcher) state(depth int32) int32 {
	for range m.width {
		m.next = append(m.next, 0)
	}
	m.depth, m.out, m.owner = append(m.depth, depth), append(m.out, 0), append(m.owner, 0)
	return int32(len(m.depth) - 1)
}

func (m *matcher) add(text []byte, owner int32) {
	at := int32(0)
	for i, b := range text {
		edge := int(at)*m.width + int(m.class[b])
		if m.next[edge] == 0 {
			fresh := m.state(int32(i + 1))
			m.next[edge] = fresh
		}
		at = m.next[edge]
	}
	m.out[at], m.owner[at] = int32(len(text)), owner
}

// link completes the trie to an automaton: where a state has no edge of its
// own, that of its longest proper suffix is taken.
func (m *matcher) link() {
	fail := make([]int32, len(m.depth))
	queue := make([]int32, 0, len(m.depth))
	for c := range m.width {
		if s := m.next[c]; s != 0 {
			queue = append(queue, s)
		}
	}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		f := fail[s]
		if m.out[s] == 0 {
			m.out[s], m.owner[s] = m.out[f], m.owner[f]
		}
		for c := range m.width {
			edge, other := int(s)*m.width+c, m.next[int(f)*m.width+c]
			if t := m.next[edge]; t != 0 {
				fail[t] = other
				queue = append(queue, t)
			} else {
				m.next[edge] = other
			}
		}
	}
}

// choose decides what takes the place of each secret's values: its word in
// brackets, unless that would spell a value. Brackets that are in no value keep
// a mark and the text beside it from spelling one together.
func (m *matcher) choose(words []string) {
	brackets := []string{"[]", "{}", "<>", "()", "||", "**", "##", "~~", "^^", "!!", "\x1a\x1a"}
	at := max(slices.IndexFunc(brackets, func(b string) bool { return m.class[b[0]]|m.class[b[1]] == 0 }), 0)
	left, right := brackets[at][:1], brackets[at][1:]
	for _, word := range words {
		mark := left + right
		for _, inner := range []string{word, "secret", "removed"} {
			s := newScanner(m)
			s.scan([]byte(left + inner + right))
			if len(s.spans) == 0 {
				mark = left + inner + right
				break
			}
		}
		m.marks = append(m.marks, mark)
	}
}

func (m *matcher) step(state int32, b byte) int32 {
	return m.next[int(state)*m.width+int(m.class[b])]
}
