package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/launcher"
)

// oneReader refuses two readers of one stdin.
func (f launchFlags) oneReader() error {
	if f.turns && f.input == "-" {
		return usagef("--turns takes this stdin line by line, and --input - takes it whole; give --input as JSON or @FILE")
	}
	return nil
}

// reloadLine is the line by which the operator has files read again, and which is
// no input.
const reloadLine = "/reload"

// lines are the inputs of turns: each is a line without its end, as it is, but for
// [reloadLine]. A last one that does not end is a line, too.
type lines struct{ r *bufio.Reader }

// Next waits for a line. What ends the wait leaves a reader behind, which gets no
// word in any more: the run is over.
func (l *lines) Next(ctx context.Context) ([]byte, error) {
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := l.read()
		read <- line{text, err}
	}()
	select {
	case got := <-read:
		return got.text, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read reads a line. One that is too long is passed over to its end, so that no
// part of it is taken for another.
func (l *lines) read() ([]byte, error) {
	text, long := []byte{}, false
	for {
		part, err := l.r.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		if long = long || len(text)+len(part) > hostcalls.MaxInput; !long {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("reading stdin: %w", err)
		case !ended && !long && len(text) == 0:
			return nil, io.EOF
		case long:
			return nil, &hostcalls.Fail{
				Errno: hostcalls.TooBig,
				Hint: fmt.Sprintf("the line is longer than %d MiB and was passed over; ask for the next one",
					hostcalls.MaxInput>>20),
			}
		}
		if string(text) == reloadLine {
			return nil, launcher.ErrReload
		}
		return text, nil
	}
}
