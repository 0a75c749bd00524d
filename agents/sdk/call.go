package sdk

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"sync"
	"unsafe"
)

// accountMax bounds the host's account of an error, in bytes.
const accountMax = 16 << 10

// A machine is the host as a module sees it: one response at a time is kept for
// the guest, so a call and the reading of what did not fit are one step that no
// other goroutine may enter.
type machine struct {
	mu      sync.Mutex
	scratch [4096]byte
}

// host is the one machine that a module runs on; the imports have no other
// address than this.
var host machine

// An invocation is one import with its arguments bound: it leaves what fits of
// the response at out and returns the length of the response, or minus an error
// number.
type invocation func(out unsafe.Pointer, room uint32) int64

// call makes one call and appends the response to dst. A response that fits in
// the free part of dst, or in the scratch buffer, takes one crossing to the host.
func call(op string, dst []byte, invoke invocation) ([]byte, error) {
	host.mu.Lock()
	defer host.mu.Unlock()
	out := dst[len(dst):cap(dst)]
	direct := len(out) >= len(host.scratch)
	if !direct {
		out = host.scratch[:]
	}
	n := invoke(unsafe.Pointer(unsafe.SliceData(out)), room(out))
	switch {
	case n < 0:
		return dst, parseError(op, errnoOf(n), host.account())
	case n > math.MaxInt32:
		return dst, malformed(op, "a response of "+strconv.FormatInt(n, 10)+" bytes")
	case n > int64(len(out)):
		return host.rest(op, dst, int(n))
	case direct:
		return dst[:len(dst)+int(n)], nil
	}
	return append(dst, out[:n]...), nil
}

// rest reads a response of n bytes that did not fit.
func (m *machine) rest(op string, dst []byte, n int) ([]byte, error) {
	had := len(dst)
	dst = slices.Grow(dst, n)
	for end := had + n; len(dst) < end; {
		buf := dst[len(dst):end]
		got := responseRead(unsafe.Pointer(unsafe.SliceData(buf)), room(buf))
		if got <= 0 || int(got) > len(buf) {
			return dst[:had], malformed(op, "the response ended early")
		}
		dst = dst[:len(dst)+int(got)]
	}
	return dst, nil
}

// account reads what the host says about the error that it just returned.
func (m *machine) account() []byte {
	var text []byte
	for len(text) < accountMax {
		got := responseRead(unsafe.Pointer(&m.scratch[0]), room(m.scratch[:]))
		if got <= 0 || int(got) > len(m.scratch) {
			break
		}
		text = append(text, m.scratch[:got]...)
	}
	return text
}

// room is the capacity of a buffer as the interface counts it.
func room(b []byte) uint32 { return uint32(min(uint64(len(b)), math.MaxInt32)) }

func errnoOf(n int64) Errno {
	if n <= math.MinInt32 {
		return ErrIO
	}
	return Errno(-n)
}

func malformed(op, what string) *Error {
	return &Error{Op: op, Errno: ErrIO, Hint: what}
}

// view lends b to a call as a string: the interface takes both as (ptr, len).
// The host reads it during the call and keeps nothing.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// number parses a response that is a decimal number.
func number(op string, response []byte) (uint64, error) {
	n, err := strconv.ParseUint(string(response), 10, 64)
	if err != nil {
		return 0, malformed(op, "a response that is no decimal number")
	}
	return n, nil
}

// unframe splits a framed response into its JSON head and its body.
func unframe(op string, response []byte) (head, body []byte, err error) {
	if len(response) >= 4 {
		n := uint64(binary.LittleEndian.Uint32(response))
		if n <= uint64(len(response)-4) {
			return response[4 : 4+n], response[4+n:], nil
		}
	}
	return nil, nil, malformed(op, "a response that is not framed")
}
