package wasm_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/engine/meter"
	"runloop.dev/rlp/internal/engine/wasm"
)

var errKind = errors.New("kind")

// FuzzReader holds numbers against what the standard library reads, and has both
// of the reader's users take the same bytes apart as a module: each accepts them
// or says, by an error of its own, why not.
func FuzzReader(f *testing.F) {
	for _, seed := range [][]byte{
		nil,
		{0x7f},
		{0x80},
		{0xff, 0xff, 0xff, 0xff, 0x0f},
		{0xff, 0xff, 0xff, 0xff, 0x1f},
		{0x80, 0x80, 0x80, 0x80, 0x80, 0},
		{0x40},
		{0xbf, 0x7f},
		{0x80, 0x80, 0x80, 0x80, 0x78},
		{0x80, 0x80, 0x80, 0x80, 0x70},
		{3, 'a', 'b', 'c'},
		{1, 0xff},
		[]byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x02\x07\x01\x01a\x01b\x00\x00"),
		[]byte("\x00asm\x01\x00\x00\x00\x04\x04\x01\x70\x00\x05\x05\x03\x01\x00\x01\x0b\x07\x01\x00\x41\x00\x0b\x01x"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := wasm.New(b, errKind)
		v, n := binary.Uvarint(b)
		if got, fits := r.U32(), n > 0 && n <= 5 && v <= math.MaxUint32; (r.Err == nil) != fits || fits &&
			(uint64(got) != v || r.P != n) {
			t.Errorf("%x: %d, %v at %d, want %d of %d bytes", b, got, r.Err, r.P, v, n)
		}
		for name, read := range map[string]func(r *wasm.Reader) []byte{
			"i32": func(r *wasm.Reader) []byte { return wasm.AppendS64(nil, int64(r.I32())) },
			"s33": func(r *wasm.Reader) []byte { return wasm.AppendS64(nil, r.S33()) },
			"u32": func(r *wasm.Reader) []byte { return wasm.AppendU32(nil, r.U32()) },
		} {
			r := wasm.New(b, errKind)
			written := read(&r)
			again := wasm.New(written, errKind)
			if r.Err == nil && (len(written) > r.P || !bytes.Equal(read(&again), written) || again.Left() != 0) {
				t.Errorf("%s: %x is written as %x", name, b[:r.P], written)
			}
			if r.Err != nil && (r.Left() != 0 || r.Byte() != 0 || r.Take(1) != nil || !errors.Is(r.Err, errKind)) {
				t.Errorf("%s: after %v something is read", name, r.Err)
			}
		}
		r = wasm.New(b, errKind)
		if count := r.Count("entries"); uint64(count) > uint64(len(b)) {
			t.Errorf("%d entries in %d bytes", count, len(b))
		}
		if _, err := guest.Imports(b); err != nil && !errors.Is(err, guest.ErrModule) && !errors.Is(err, guest.ErrComponent) {
			t.Errorf("the guest's bounds: %v", err)
		}
		_, err := meter.Rewrite(b, meter.Option{})
		if err != nil && !errors.Is(err, meter.ErrMalformed) && !errors.Is(err, meter.ErrUnsupported) &&
			!errors.Is(err, meter.ErrLimit) && !errors.Is(err, meter.ErrReserved) {
			t.Errorf("the meter: %v", err)
		}
	})
}
