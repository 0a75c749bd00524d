package tomlfile

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"
)

// A builder walks the syntax of a document once and makes the tree. Its cursor
// follows the walk, because the library keeps no place for arrays.
type builder struct {
	*document
	p      unstable.Parser
	root   *Table
	here   *Table // the table that key = value lines go into
	depth  int    // of here
	cursor int
}

func (d *document) build() (*Table, error) {
	b := &builder{document: d, root: &Table{Pos: d.pos(0)}}
	b.here = b.root
	b.p.Reset(d.data)
	for b.p.NextExpression() {
		n := b.p.Expression()
		var err error
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			err = b.header(n)
		case unstable.KeyValue:
			err = b.keyValue(b.here, n, b.depth)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := b.p.Error(); err != nil {
		return nil, d.syntaxError(err)
	}
	return b.root, nil
}

func (b *builder) header(n *unstable.Node) error {
	t, depth := b.root, 0
	for it := n.Key(); it.Next(); depth++ {
		k, err := b.key(it.Node(), depth)
		if err != nil {
			return err
		}
		last := it.IsLast()
		e, ok := t.Get(k.Key)
		switch {
		case last && n.Kind == unstable.ArrayTable:
			if !ok {
				k.Value = Value{Kind: Array, Pos: k.Pos}
				e = t.add(k)
			}
			if e.Value.Kind != Array {
				return &Error{Pos: k.Pos, Msg: "the key " + strconv.Quote(k.Key) + " is there already, as " + e.Value.Kind.String()}
			}
			t = &Table{Pos: k.Pos, header: true}
			e.Value.Items = append(e.Value.Items, Value{Kind: TableKind, Pos: k.Pos, Table: t})
		default:
			t, err = b.descend(t, k)
			if err != nil {
				return err
			}
			if last && !t.header {
				t.header, t.Pos = true, k.Pos
			}
		}
	}
	b.here, b.depth = t, depth
	return nil
}

func (b *builder) descend(t *Table, k Entry) (*Table, error) {
	e, ok := t.Get(k.Key)
	if !ok {
		sub := &Table{Pos: k.Pos}
		k.Value = Value{Kind: TableKind, Pos: k.Pos, Table: sub}
		t.add(k)
		return sub, nil
	}
	if e.Value.Kind == TableKind {
		return e.Value.Table, nil
	}
	if items := e.Value.Items; len(items) > 0 && items[len(items)-1].Kind == TableKind {
		return items[len(items)-1].Table, nil
	}
	return nil, &Error{Pos: k.Pos, Msg: "the key " + strconv.Quote(k.Key) + " is there already, as " +
		e.Value.Kind.String()}
}

func (b *builder) keyValue(t *Table, n *unstable.Node, depth int) error {
	for it := n.Key(); it.Next(); depth++ {
		k, err := b.key(it.Node(), depth)
		if err != nil {
			return err
		}
		if !it.IsLast() {
			if t, err = b.descend(t, k); err != nil {
				return err
			}
			continue
		}
		if _, ok := t.Get(k.Key); ok {
			return &Error{Pos: k.Pos, Msg: "the key " + strconv.Quote(k.Key) + " is there already"}
		}
		b.skipTo('=')
		b.cursor++
		if k.Value, err = b.value(n.Value(), depth+1); err != nil {
			return err
		}
		t.add(k)
	}
	return nil
}

// key reads one part of a key and leaves the cursor behind it.
func (b *builder) key(n *unstable.Node, depth int) (Entry, error) {
	off := int(n.Raw.Offset)
	b.cursor = off + int(n.Raw.Length)
	if depth >= maxDepth {
		return Entry{}, b.errorf(off, "tables and arrays are nested more than %d deep", maxDepth)
	}
	k := string(n.Data)
	return Entry{Key: k, Pos: b.pos(off), start: off}, b.checkControl(off, k, true)
}

func (b *builder) value(n *unstable.Node, depth int) (v Value, err error) {
	b.skipSpace()
	start := b.cursor
	v = Value{Pos: b.pos(start), start: start}
	defer func() { v.end = b.cursor }()
	if depth > maxDepth {
		return v, b.errorf(start, "tables and arrays are nested more than %d deep", maxDepth)
	}
	switch n.Kind {
	case unstable.Array:
		v.Kind, v.Items = Array, []Value{}
		b.cursor++
		for it := n.Children(); it.Next(); {
			item, err := b.value(it.Node(), depth+1)
			if err != nil {
				return v, err
			}
			v.Items = append(v.Items, item)
		}
		b.skipSpace()
		b.cursor++
	case unstable.InlineTable:
		v.Kind, v.Table = TableKind, &Table{Pos: v.Pos, header: true}
		b.cursor++
		for it := n.Children(); it.Next(); {
			if err := b.keyValue(v.Table, it.Node(), depth); err != nil {
				return v, err
			}
		}
		b.skipSpace()
		b.cursor++
	default:
		b.cursor = int(n.Raw.Offset + n.Raw.Length)
		return v, b.scalar(&v, n, start)
	}
	return v, nil
}

func (b *builder) scalar(v *Value, n *unstable.Node, off int) error {
	text := string(n.Data)
	var err error
	switch n.Kind {
	case unstable.String:
		v.Kind, v.Str = String, text
		return b.checkControl(off, text, false)
	case unstable.Bool:
		v.Kind, v.Bool = Bool, text == "true"
	case unstable.Integer:
		v.Kind = Integer
		if v.Int, err = strconv.ParseInt(text, 0, 64); err != nil {
			return b.errorf(off, "the number %s is not an integer between -2^63 and 2^63-1", text)
		}
	case unstable.Float:
		v.Kind, v.Float = Float, float(text)
	default:
		v.Kind, v.Str = DateTime, text
		v.Time, _ = time.Parse(time.RFC3339Nano, strings.Replace(strings.ToUpper(text), " ", "T", 1))
	}
	return nil
}

// float reads a TOML float that is known to be well formed or will be refused.
func float(text string) float64 {
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) {
		return math.NaN()
	}
	return f
}

func (b *builder) skipSpace() {
	for b.cursor < len(b.data) {
		switch b.data[b.cursor] {
		case ' ', '\t', '\r', '\n', ',':
			b.cursor++
		case '#':
			for b.cursor < len(b.data) && b.data[b.cursor] != '\n' {
				b.cursor++
			}
		default:
			return
		}
	}
}

func (b *builder) skipTo(c byte) {
	for b.cursor < len(b.data) && b.data[b.cursor] != c {
		b.cursor++
	}
}
