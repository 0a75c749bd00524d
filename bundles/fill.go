package bundles

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/blake3"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// An edit replaces bytes [from, to) of a text.
type edit struct {
	from, to int
	text     string
}

// A filler writes digests into the text of a manifest and leaves everything
// else of it, order and comments, as it stands.
type filler struct {
	file  string
	text  []byte
	lines []int // offset of each line
	tree  map[string][]byte
	edits []edit

	machine, sum string // the program of the machine, and its sha256; "": there is none
}

// fillDigests returns the manifest with the digest of every file of tree that it
// names, sha256 where it gave none, and of a program of the machine, which is sum.
// Doing it again changes nothing.
func fillDigests(file string, manifest []byte, tree map[string][]byte, sum string) ([]byte, error) {
	m, err := ParseManifest(file, manifest)
	if err != nil {
		return nil, err
	}
	root, err := tomlfile.ParseMax(file, manifest, MaxManifest)
	if err != nil {
		return nil, manifestErrors(err)
	}
	f := &filler{file: file, text: manifest, tree: tree, lines: []int{0}}
	if m.OfMachine() {
		f.machine, f.sum = m.Entry.Path, sum
	}
	for i, c := range manifest {
		if c == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	agent := sub(root, "agent")
	for _, t := range []*tomlfile.Table{
		sub(agent, entryWasm), sub(root, entryWasm), sub(agent, entryProgram), sub(root, entryProgram),
	} {
		if err := f.fill(t, "path"); err != nil {
			return nil, err
		}
	}
	if artifacts := sub(root, "artifacts"); artifacts != nil {
		for i := range artifacts.Entries {
			if err := f.fill(artifacts.Entries[i].Value.Table, "path"); err != nil {
				return nil, err
			}
		}
	}
	// Last, because what it adds goes behind everything else.
	if err := f.caps(sub(root, "caps")); err != nil {
		return nil, err
	}
	return f.apply(), nil
}

func sub(t *tomlfile.Table, key string) *tomlfile.Table {
	e, ok := t.Get(key)
	if !ok {
		return nil
	}
	return e.Value.Table
}

// caps fills [caps], or adds it for a policy that lies there by its default
// name.
func (f *filler) caps(t *tomlfile.Table) error {
	if t != nil {
		return f.fill(t, "file")
	}
	data, ok := f.tree[DefaultPolicyName]
	if !ok {
		return nil
	}
	nl := f.lineEnd(0)
	head := nl
	if n := len(f.text); n > 0 && f.text[n-1] != '\n' {
		head += nl
	}
	f.edits = append(f.edits, edit{
		len(f.text), len(f.text),
		head + "[caps]" + nl + `file = "` + DefaultPolicyName + `"` + nl + `sha256 = "` + sha256Hex(data) + `"` + nl,
	})
	return nil
}

// fill writes the digests of the file that a table names.
func (f *filler) fill(t *tomlfile.Table, key string) error {
	if t == nil {
		return nil
	}
	named, _ := t.Get(key)
	data, ok := f.tree[named.Value.Str]
	sha := func([]byte) string { return f.sum }
	if ok {
		sha = sha256Hex
	} else if f.machine == "" || named.Value.Str != f.machine {
		return nil // verification says so
	}
	given := false
	for name, sum := range map[string]func([]byte) string{"sha256": sha, "blake3": blake3Hex} {
		e, ok := t.Get(name)
		if !ok {
			continue
		}
		given = true
		from := f.offset(e.Value.Pos)
		to, ok := f.stringEnd(from)
		if !ok {
			return f.cannot(e.Value.Pos)
		}
		f.edits = append(f.edits, edit{from, to, `"` + sum(data) + `"`})
	}
	if given {
		return nil
	}
	return f.insert(t, named, sha(data))
}

// insert adds a digest behind the name of the file: in braces on the same line,
// elsewhere on the next.
func (f *filler) insert(t *tomlfile.Table, named *tomlfile.Entry, sum string) error {
	value := f.offset(named.Value.Pos)
	end, ok := f.stringEnd(value)
	if !ok {
		return f.cannot(named.Value.Pos)
	}
	if f.text[f.offset(t.Pos)] == '{' {
		f.edits = append(f.edits, edit{end, end, `, sha256 = "` + sum + `"`})
		return nil
	}
	before := f.text[f.lines[named.Pos.Line-1]:f.offset(named.Pos)]
	if !isKeyStart(string(before)) {
		return f.cannot(named.Value.Pos)
	}
	at, nl := len(f.text), f.lineEnd(named.Value.Pos.Line-1)
	if n := named.Value.Pos.Line; n < len(f.lines) {
		at = f.lines[n] - len(nl)
	}
	f.edits = append(f.edits, edit{at, at, nl + string(before) + `sha256 = "` + sum + `"`})
	return nil
}

// isKeyStart reports whether a text can stand before the last part of a key on
// a line of its own: nothing, or bare parts that end in dots.
func isKeyStart(s string) bool {
	for s = strings.TrimLeft(s, " \t"); s != ""; {
		part, rest, ok := strings.Cut(s, ".")
		if !ok || strings.ContainsFunc(strings.TrimSpace(part), func(r rune) bool {
			return r != '_' && r != '-' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
		}) {
			return false
		}
		s = strings.TrimLeft(rest, " \t")
	}
	return true
}

func (f *filler) cannot(pos tomlfile.Pos) error {
	return &Error{
		File: pos.File, Line: pos.Line, Column: pos.Column, Code: "manifest",
		Message: "the digest of this file cannot be filled in here",
		Hint:    "write the key and its plain string on one line",
	}
}

// lineEnd returns what ends line i, or would.
func (f *filler) lineEnd(i int) string {
	if i+1 < len(f.lines) && f.lines[i+1] >= 2 && f.text[f.lines[i+1]-2] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func (f *filler) offset(p tomlfile.Pos) int {
	off := f.lines[p.Line-1]
	for range p.Column - 1 {
		_, n := utf8.DecodeRune(f.text[off:])
		off += n
	}
	return off
}

// stringEnd returns where the one-line string that begins at an offset ends.
func (f *filler) stringEnd(off int) (int, bool) {
	quote := f.text[off]
	if bytes.HasPrefix(f.text[off+1:], []byte{quote, quote}) {
		return 0, false
	}
	for i := off + 1; i < len(f.text); i++ {
		switch c := f.text[i]; {
		case c == quote:
			return i + 1, true
		case c == '\\' && quote == '"':
			i++
		case c == '\n':
			return 0, false
		}
	}
	return 0, false
}

func (f *filler) apply() []byte {
	slices.SortStableFunc(f.edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out bytes.Buffer
	done := 0
	for _, e := range f.edits {
		out.Write(f.text[done:e.from])
		out.WriteString(e.text)
		done = e.to
	}
	out.Write(f.text[done:])
	return out.Bytes()
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func blake3Hex(data []byte) string {
	sum := blake3.Sum256(data)
	return hex.EncodeToString(sum[:])
}
