package mcpserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"runloop.dev/rlp/internal/base/strictjson"
)

// Bounds of what a client sends at a time.
const (
	mostMessage  = 8 << 20 // bytes of one message
	mostElements = 16      // of a list of messages
)

// withLists is the one version of the protocol whose messages may come as a list.
const withLists = "2025-03-26"

// messages are those of text, if it is readable in one way only: a key that is there
// twice would be another one for another reader. A list of them is taken where the
// session speaks the version that has it.
func messages(text []byte, version string) ([][]byte, error) {
	text = bytes.TrimSpace(text)
	if !bytes.HasPrefix(text, []byte("[")) {
		if err := envelope(text); err != nil {
			return nil, fmt.Errorf("the message: %w", err)
		}
		return [][]byte{text}, nil
	}
	list, err := strictjson.Elements(text, strictjson.Enclosing)
	switch n := len(list); {
	case err != nil:
		return nil, err
	case version != withLists:
		return nil, fmt.Errorf("a list of messages is taken in a session of version %s alone; send each message by itself",
			withLists)
	case n == 0 || n > mostElements:
		return nil, fmt.Errorf("a list has %d messages, and from 1 to %d are taken; send fewer at a time", n, mostElements)
	default:
		for i, raw := range list {
			if err := envelope(raw); err != nil {
				return nil, strictjson.Under(fmt.Sprintf("[%d]", i), err)
			}
		}
		return list, nil
	}
}

// lines are the messages of a stream, each of which stands on a line of its own.
// They say when the stream has ended.
type lines struct {
	io.Closer
	in      *bufio.Reader
	spoken  func() string // the version that was agreed on
	message []byte        // what is left of it
	once    sync.Once
	ended   chan struct{}
}

func linesOf(in io.ReadCloser, spoken func() string) *lines {
	return &lines{Closer: in, in: bufio.NewReader(in), spoken: spoken, ended: make(chan struct{})}
}

// Read implements [io.Reader].
func (l *lines) Read(p []byte) (int, error) {
	if len(l.message) == 0 {
		var err error
		if l.message, err = l.next(); err != nil {
			l.once.Do(func() { close(l.ended) })
			return 0, err
		}
	}
	n := copy(p, l.message)
	l.message = l.message[n:]
	return n, nil
}

// next is the next message, which is one that may be taken.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil && !(errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) > 0) {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if _, err := messages(line, l.spoken()); err != nil {
			return nil, err
		}
		return line, nil
	}
}

// line is the next one, with what ends it.
func (l *lines) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := l.in.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > mostMessage:
			return nil, errors.New("the message is too long; one has at most 8 MiB")
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}
