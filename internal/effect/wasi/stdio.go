package wasi

import (
	"context"
	"io"
	"strings"
)

// inputChunk is how much of a stream is read ahead of the guest.
const inputChunk = 16 << 10

// input is standard input. What is in memory already is read directly; any
// other reader may wait for someone, so it is read beside the run, into a
// buffer of its own, and the guest's wait ends with the run.
type input struct {
	r      io.Reader
	direct bool

	buf   []byte
	left  []byte // read and not yet taken
	err   error  // what the reader ended with
	busy  bool   // a read is under way, and buf is its
	ready chan chunk
}

type chunk struct {
	n   int
	err error
}

func newInput(r io.Reader) *input {
	if r == nil {
		r = strings.NewReader("")
	}
	_, inMemory := r.(interface{ Len() int })
	return &input{r: r, direct: inMemory}
}

// begin makes sure that there is something to take, or a read under way, of what
// is not read directly.
func (in *input) begin() {
	if in.busy || len(in.left) > 0 || in.err != nil {
		return
	}
	if in.buf == nil {
		in.buf, in.ready = make([]byte, inputChunk), make(chan chunk, 1)
	}
	in.busy = true
	go func() {
		n, err := in.r.Read(in.buf)
		in.ready <- chunk{n, err}
	}()
}

// settle takes over what the read brought.
func (in *input) settle(c chunk) {
	in.busy, in.err = false, c.err
	in.left = in.buf[:min(max(c.n, 0), len(in.buf))]
}

// poll reports, without waiting, how many bytes can be taken and whether the
// stream has ended. Neither means that a read is under way.
func (in *input) poll() (n int, ended bool) {
	if in.direct {
		n = in.r.(interface{ Len() int }).Len()
		return n, n == 0
	}
	in.begin()
	select {
	case c := <-in.ready:
		in.settle(c)
	default:
	}
	return len(in.left), len(in.left) == 0 && in.err != nil
}

// read waits until there is something, the end (0, nil), or ctx is over.
func (in *input) read(ctx context.Context, p []byte) (int, error) {
	if in.direct {
		n, err := in.r.Read(p)
		if err == io.EOF {
			err = nil
		}
		return n, err
	}
	for len(in.left) == 0 && in.err == nil {
		in.begin()
		select {
		case c := <-in.ready:
			in.settle(c)
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	if len(in.left) == 0 {
		if in.err == io.EOF {
			return 0, nil
		}
		return 0, in.err
	}
	n := copy(p, in.left)
	in.left = in.left[n:]
	return n, nil
}
