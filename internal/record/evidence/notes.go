package evidence

import (
	"bytes"
	"fmt"
)

// A Note is one checkpoint of a file that has many, one after another with an
// empty line between two, or none: whoever appends what rlp audit checkpoint
// prints writes none.
type Note struct {
	Line int // where it begins, from 1
	Text []byte
	// Torn says what is wrong with a piece that is no checkpoint: writing it was
	// interrupted. Files that can only be appended to keep such pieces.
	Torn string
}

// SplitNotes returns the checkpoints of a file in their order.
func SplitNotes(data []byte) []Note {
	var list []Note
	var text []byte // of a note whose signatures are to come
	begin := 0
	give := func(n Note) {
		if _, err := parseCheckpoint(n.Text); err != nil {
			n.Torn = fmt.Sprintf("half a checkpoint: %v", err)
		}
		list = append(list, n)
	}
	for _, b := range blocks(data) {
		signatures := isSignature(b.text)
		if text != nil && signatures {
			give(Note{Line: begin, Text: append(append(text, '\n'), b.text...)})
			text = nil
			continue
		}
		if text != nil {
			give(Note{Line: begin, Text: text})
		}
		text, begin = b.text, b.line
	}
	if text != nil {
		give(Note{Line: begin, Text: text})
	}
	return list
}

// JoinNotes is the text of a file that has these checkpoints.
func JoinNotes(notes [][]byte) []byte { return bytes.Join(notes, []byte("\n")) }

// A block is the lines between two empty ones, or lines of signatures alone.
type block struct {
	line int
	text []byte // with its line ends
}

func blocks(data []byte) []block {
	var list []block
	open, n := false, 0
	for line := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSuffix(line, []byte("\n"))) == 0 {
			open = false
			continue
		}
		if open && isSignature(list[len(list)-1].text) && !isSignature(line) {
			open = false
		}
		if !open {
			list = append(list, block{line: n})
			open = true
		}
		last := &list[len(list)-1]
		last.text = append(last.text, line...)
	}
	return list
}

// isSignature reports whether text begins as a line that signs a note.
func isSignature(text []byte) bool { return bytes.HasPrefix(text, []byte("— ")) }
