package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"runtime"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
)

type message struct {
	A int    `cbor:"1,keyasint"`
	B []byte `cbor:"2,keyasint,omitempty"`
}

func conn(t testing.TB, rw io.ReadWriter) *Conn {
	t.Helper()
	codec, err := audit.NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	return NewConn(rw, codec)
}

func TestRoundTrip(t *testing.T) {
	var buf bytes.Buffer
	c := conn(t, &buf)
	sent := []message{{1, nil}, {-5, []byte("x")}, {2, make([]byte, 3<<20)}}
	for _, m := range sent {
		if err := c.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range sent {
		var got message
		if err := c.Receive(&got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, %d bytes, want %d", err, len(got.B), len(want.B))
		}
	}
	if err := c.Receive(new(message)); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if err := c.Send(message{B: make([]byte, MaxMessage)}); err == nil {
		t.Error("a message that nobody receives was sent")
	}
}

// A length that is claimed and not sent costs no memory.
func TestClaimedLength(t *testing.T) {
	claim := binary.LittleEndian.AppendUint32(nil, MaxMessage)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 50 {
		if err := conn(t, bytes.NewBuffer(append([]byte(nil), claim...))).Receive(new(message)); !errors.Is(err,
			io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 50*MaxMessage/8 {
		t.Errorf("50 empty claims cost %d bytes", grown)
	}
}

// FuzzReceive: what comes is a message or an error, and a message means what it says.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{4, 0, 0, 0, 0xa1, 1, 1, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Add([]byte{3, 0, 0, 0, 0xa1, 1, 7})
	f.Add([]byte{5, 0, 0, 0, 0xa1, 2, 0x42, 1, 2})
	f.Fuzz(func(t *testing.T, p []byte) {
		var m message
		if err := conn(t, bytes.NewBuffer(p)).Receive(&m); err != nil {
			return
		}
		var buf bytes.Buffer
		c := conn(t, &buf)
		if err := c.Send(m); err != nil {
			t.Fatal(err)
		}
		var again message
		if err := c.Receive(&again); err != nil || again.A != m.A || !bytes.Equal(again.B, m.B) {
			t.Fatalf("%+v became %+v: %v", m, again, err)
		}
	})
}
