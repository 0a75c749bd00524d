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
	"math"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// A Wire is a message of protobuf that is being written.
type Wire []byte

func (w *Wire) tag(field uint64, kind protowire.Type) {
	*w = protowire.AppendTag(*w, protowire.Number(field), kind)
}

// Varint writes a number, as long as it is one.
func (w *Wire) Varint(field, v uint64) {
	if v != 0 {
		w.Oneof(field, v)
	}
}

// Oneof writes a number though it is 0: that it is there says something.
func (w *Wire) Oneof(field, v uint64) {
	w.tag(field, protowire.VarintType)
	*w = protowire.AppendVarint(*w, v)
}

// Zigzag writes a number that may be negative (sint32, sint64).
func (w *Wire) Zigzag(field uint64, v int64) { w.Varint(field, protowire.EncodeZigZag(v)) }

// Bool writes a truth though it is false.
func (w *Wire) Bool(field uint64, v bool) { w.Oneof(field, protowire.EncodeBool(v)) }

// Fixed64 writes eight bytes.
func (w *Wire) Fixed64(field, v uint64) {
	w.tag(field, protowire.Fixed64Type)
	*w = protowire.AppendFixed64(*w, v)
}

// Double writes a fraction.
func (w *Wire) Double(field uint64, v float64) { w.Fixed64(field, math.Float64bits(v)) }

// Fixed32 writes four bytes.
func (w *Wire) Fixed32(field uint64, v uint32) {
	w.tag(field, protowire.Fixed32Type)
	*w = protowire.AppendFixed32(*w, v)
}

// Bytes writes bytes though there are none.
func (w *Wire) Bytes(field uint64, p []byte) {
	w.tag(field, protowire.BytesType)
	*w = protowire.AppendBytes(*w, p)
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
	w.tag(field, protowire.BytesType)
	*w = protowire.AppendString(*w, s)
}

// Message writes what do writes, and its length before it.
func (w *Wire) Message(field uint64, do func(*Wire)) {
	w.tag(field, protowire.BytesType)
	at := len(*w)
	do(w)
	size := uint64(len(*w) - at)
	n := protowire.SizeVarint(size)
	*w = append(*w, make([]byte, n)...)
	copy((*w)[at+n:], (*w)[at:])
	protowire.AppendVarint((*w)[:at], size)
}

// Packed writes a list of numbers.
func (w *Wire) Packed(field uint64, list []uint64) {
	if len(list) > 0 {
		w.Message(field, func(w *Wire) {
			for _, v := range list {
				*w = protowire.AppendVarint(*w, v)
			}
		})
	}
}

// PackedFixed64 writes a list of eight bytes each.
func (w *Wire) PackedFixed64(field uint64, list []uint64) {
	if len(list) > 0 {
		w.Message(field, func(w *Wire) {
			for _, v := range list {
				*w = protowire.AppendFixed64(*w, v)
			}
		})
	}
}

// PackedDouble writes a list of fractions.
func (w *Wire) PackedDouble(field uint64, list []float64) {
	if len(list) > 0 {
		w.Message(field, func(w *Wire) {
			for _, v := range list {
				*w = protowire.AppendFixed64(*w, math.Float64bits(v))
			}
		})
	}
}

// Fields calls do with the numbers and byte strings of a message, as far as it
// is one.
func Fields(p []byte, do func(field uint64, number uint64, bytes []byte)) {
	for len(p) > 0 {
		field, kind, n := protowire.ConsumeTag(p)
		if n < 0 {
			return
		}
		p = p[n:]
		if n = protowire.ConsumeFieldValue(field, kind, p); n < 0 {
			return
		}
		switch kind {
		case protowire.VarintType:
			v, _ := protowire.ConsumeVarint(p)
			do(uint64(field), v, nil)
		case protowire.BytesType:
			text, _ := protowire.ConsumeBytes(p)
			do(uint64(field), 0, text)
		}
		p = p[n:]
	}
}
