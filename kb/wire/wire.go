// Package wire carries messages between the process that owns a store and
// those that use it: a length, then that many bytes of deterministic CBOR. What is
// asked for is a [Request], which the same process or another answers.
//
// The other side is a process of the same user, and is still not believed: a
// length is checked before anything is allocated for it, and unknown keys,
// trailing bytes and deep nesting are errors.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"runloop.dev/rlp/internal/record/audit"
)

// MaxMessage bounds one message, in bytes.
const MaxMessage = 8 << 20

// ErrMalformed is wrapped by errors about what was received, not about how.
var ErrMalformed = errors.New("malformed message")

// A Conn sends and receives messages. It is for one goroutine at a time.
type Conn struct {
	rw    io.ReadWriter
	codec *audit.Codec
	buf   []byte
}

// NewConn returns a Conn over rw.
func NewConn(rw io.ReadWriter, codec *audit.Codec) *Conn { return &Conn{rw: rw, codec: codec} }

// Send writes v as one message.
func (c *Conn) Send(v any) error {
	body, err := c.codec.Marshal(v)
	if err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	if len(body) > MaxMessage {
		return fmt.Errorf("sending: a message of %d bytes is more than %d", len(body), MaxMessage)
	}
	c.buf = append(binary.LittleEndian.AppendUint32(c.buf[:0], uint32(len(body))), body...)
	if _, err := c.rw.Write(c.buf); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	return nil
}

// Receive reads one message into v. At a clean end it returns [io.EOF].
func (c *Conn) Receive(v any) error {
	var head [4]byte
	if _, err := io.ReadFull(c.rw, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return fmt.Errorf("receiving: %w", err)
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > MaxMessage {
		return fmt.Errorf("receiving: %w: a length of %d", ErrMalformed, n)
	}
	body, err := readN(c.rw, int(n))
	if err != nil {
		return fmt.Errorf("receiving: %w", err)
	}
	if err := c.codec.Unmarshal(body, v); err != nil {
		return fmt.Errorf("receiving: %w: %w", ErrMalformed, err)
	}
	return nil
}

// readN reads n bytes, allocating no more than twice of what has come.
func readN(r io.Reader, n int) ([]byte, error) {
	const step = 64 << 10
	buf := make([]byte, 0, min(n, step))
	for len(buf) < n {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, min(n, 2*cap(buf))), buf...)
		}
		got, err := io.ReadFull(r, buf[len(buf):min(n, cap(buf))])
		buf = buf[:len(buf)+got]
		if err != nil {
			return nil, errors.Join(io.ErrUnexpectedEOF, err)
		}
	}
	return buf, nil
}
