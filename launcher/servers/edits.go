package servers

import (
	"bytes"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// An edit puts text in the place of bytes. What no edit names stays to the byte.
type edit struct {
	start, end int
	text       string
}

// apply makes edits, none of which touches what another does.
func apply(data []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, data[at:e.start]...), e.text...)
		at = e.end
	}
	return append(out, data[at:]...)
}

// lineStart is where the line of a byte begins, and lineEnd where the next one does.
func lineStart(data []byte, at int) int { return bytes.LastIndexByte(data[:at], '\n') + 1 }

func lineEnd(data []byte, at int) int {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(data)
}

// whole is the span of what goes with the blanks that are left of it: its line, where
// it is alone there, else those before it or, at the beginning of a line, behind it.
func whole(data []byte, start, end int) (int, int) {
	from, to := lineStart(data, start), lineEnd(data, end)
	first := len(bytes.TrimSpace(data[from:start])) == 0
	switch {
	case first && len(bytes.TrimSpace(data[end:to])) == 0:
		return from, to
	case first:
		return start, to - len(bytes.TrimLeft(data[end:to], " \t"))
	}
	return from + len(bytes.TrimRight(data[from:start], " \t")), end
}

// without takes members out of an object, and of the commas those that part nothing
// any more. plain is the text without comments. A member that stands on a line of its
// own, as under a header of TOML, goes with its line.
func without(data, plain []byte, of *tomlfile.Table, gone map[string]bool) []edit {
	var edits []edit
	commas := make([]int, len(of.Entries)) // behind each member; 0: none
	last := -1                             // that stays
	for i := range of.Entries {
		_, end := of.Entries[i].Value.Span()
		at := len(plain) - len(bytes.TrimLeft(plain[end:], " \t\r\n"))
		if at < len(plain) && plain[at] == ',' {
			commas[i] = at
		}
		if !gone[of.Entries[i].Key] {
			last = i
		}
	}
	trailing := commas[len(commas)-1] > 0
	for i := range of.Entries {
		e := &of.Entries[i]
		_, end := e.Value.Span()
		if !gone[e.Key] {
			if i == last && !trailing && commas[i] > 0 {
				edits = append(edits, edit{commas[i], commas[i] + 1, ""})
			}
			continue
		}
		if commas[i] == end {
			end++
		} else if commas[i] > 0 {
			edits = append(edits, edit{commas[i], commas[i] + 1, ""})
		}
		start, end := whole(data, e.Start(), end)
		edits = append(edits, edit{start, end, ""})
	}
	return edits
}

// before puts items in front of those of a list, spaced as these are.
func before(plain []byte, list *tomlfile.Value, items []string) edit {
	start, end := list.Span()
	if len(list.Items) == 0 {
		return edit{start, end, "[" + strings.Join(items, ", ") + "]"}
	}
	first, _ := list.Items[0].Span()
	space := string(plain[start+1 : first])
	if i := strings.LastIndexByte(space, '\n'); i >= 0 {
		space = space[i:]
	}
	if space == "" {
		space = " "
	}
	return edit{first, first, strings.Join(items, ","+space) + "," + space}
}

// A Hunk is some lines of a file, as they are and as they would be.
type Hunk struct {
	Line     int      `json:"line"`
	Old, New []string `json:"-"`
}

// hunks are the lines that edits touch. Nothing of hidden, which are spans of the old
// text, is in them.
func hunks(data []byte, edits []edit, hidden [][2]int) []Hunk {
	shown := bytes.Clone(data)
	for _, h := range hidden {
		for i := h[0]; i < h[1]; i++ {
			shown[i] = '*'
		}
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var list []Hunk
	for i := 0; i < len(edits); {
		from, to := lineStart(data, edits[i].start), lineEnd(data, edits[i].end)
		j := i + 1
		for ; j < len(edits) && edits[j].start <= to; j++ {
			to = max(to, lineEnd(data, edits[j].end))
		}
		var own []edit
		for _, e := range edits[i:j] {
			own = append(own, edit{e.start - from, e.end - from, e.text})
		}
		h := Hunk{Line: 1 + bytes.Count(data[:from], []byte("\n")), Old: lines(shown[from:to])}
		h.New = lines(apply(shown[from:to], own))
		list = append(list, h)
		i = j
	}
	return list
}

func lines(text []byte) []string {
	var list []string
	for line := range bytes.Lines(text) {
		list = append(list, strings.TrimRight(string(line), "\r\n"))
	}
	return list
}
