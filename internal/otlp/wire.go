// Package otlp is what is said to collectors of OpenTelemetry: protobuf over HTTP,
// without gRPC and without the generated form of its messages.
//
// Those messages are few and small, so they are written by hand: their generated
// form would have to be linked and initialized by every command. What is written is
// read back by the generated form in the tests of those who write.
//
// A [Sender] gives up after a while, and what it was given is lost then: it is for
// what may be lost. It holds nobody up but its caller.
package otlp

import (
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf8"
)

// A Wire is a message of protobuf that is being written.
type Wire []byte

// The ways in which a field is written.
const (
	varint = 0
	fixed8 = 1
	length = 2
	fixed4 = 5
)

func (w *Wire) tag(field, kind uint64) { *w = binary.AppendUvarint(*w, field<<3|kind) }

// Varint writes a number, as long as it is one.
func (w *Wire) Varint(field, v uint64) {
	if v != 0 {
		w.Oneof(field, v)
	}
}

// Oneof writes a number though it is 0: that it is there says something.
func (w *Wire) Oneof(field, v uint64) {
	w.tag(field, varint)
	*w = binary.AppendUvarint(*w, v)
}

// Zigzag writes a number that may be negative (sint32, sint64).
func (w *Wire) Zigzag(field uint64, v int64) { w.Varint(field, uint64(v)<<1^uint64(v>>63)) }

// Bool writes a truth though it is false.
func (w *Wire) Bool(field uint64, v bool) {
	n := uint64(0)
	if v {
		n = 1
	}
	w.Oneof(field, n)
}

// Fixed64 writes eight bytes.
func (w *Wire) Fixed64(field, v uint64) {
	w.tag(field, fixed8)
	*w = binary.LittleEndian.AppendUint64(*w, v)
}

// Double writes a fraction.
func (w *Wire) Double(field uint64, v float64) { w.Fixed64(field, math.Float64bits(v)) }

// Fixed32 writes four bytes.
func (w *Wire) Fixed32(field uint64, v uint32) {
	w.tag(field, fixed4)
	*w = binary.LittleEndian.AppendUint32(*w, v)
}

// Bytes writes bytes though there are none.
func (w *Wire) Bytes(field uint64, p []byte) {
	w.tag(field, length)
	*w = append(binary.AppendUvarint(*w, uint64(len(p))), p...)
}

// Text writes text, unless it is empty.
func (w *Wire) Text(field uint64, s string) {
	if s != "" {
		w.String(field, s)
	}
}

// String writes text though it is empty. What is not UTF-8 is replaced: a receiver
// would refuse all of the request for it.
func (w *Wire) String(field uint64, s string) {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	w.tag(field, length)
	*w = append(binary.AppendUvarint(*w, uint64(len(s))), s...)
}

// Message writes what do writes, and its length before it.
func (w *Wire) Message(field uint64, do func(*Wire)) {
	w.tag(field, length)
	at := len(*w)
	do(w)
	var size [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(size[:], uint64(len(*w)-at))
	*w = append(*w, size[:n]...)
	copy((*w)[at+n:], (*w)[at:len(*w)-n])
	copy((*w)[at:], size[:n])
}

// Packed writes a list of numbers.
func (w *Wire) Packed(field uint64, list []uint64) {
	if len(list) > 0 {
		w.Message(field, func(w *Wire) {
			for _, v := range list {
				*w = binary.AppendUvarint(*w, v)
			}
		})
	}
}

// PackedFixed64 writes a list of eight bytes each.
func (w *Wire) PackedFixed64(field uint64, list []uint64) {
	if len(list) > 0 {
		w.tag(field, length)
		*w = binary.AppendUvarint(*w, uint64(8*len(list)))
		for _, v := range list {
			*w = binary.LittleEndian.AppendUint64(*w, v)
		}
	}
}

// PackedDouble writes a list of fractions.
func (w *Wire) PackedDouble(field uint64, list []float64) {
	if len(list) > 0 {
		w.tag(field, length)
		*w = binary.AppendUvarint(*w, uint64(8*len(list)))
		for _, v := range list {
			*w = binary.LittleEndian.AppendUint64(*w, math.Float64bits(v))
		}
	}
}

// Fields calls do with the numbers and byte strings of a message, as far as it
// is one of these alone.
func Fields(p []byte, do func(field, number uint64, bytes []byte)) {
	for len(p) > 0 {
		tag, n := binary.Uvarint(p)
		if n <= 0 {
			return
		}
		p = p[n:]
		v, n := binary.Uvarint(p)
		switch tag & 7 {
		case varint:
			if n <= 0 {
				return
			}
			p = p[n:]
			do(tag>>3, v, nil)
		case length:
			if n <= 0 || v > uint64(len(p)-n) {
				return
			}
			do(tag>>3, 0, p[n:n+int(v)])
			p = p[n+int(v):]
		default:
			return
		}
	}
}
