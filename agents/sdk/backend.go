//go:build !wasip1

package sdk

import (
	"errors"
	"strings"
	"sync"
	"unsafe"

	"runloop.dev/rlp/agents/sdk/jsonlite"
)

// A Backend stands in for the host in native builds, that is in tests and when
// an agent is run as an ordinary program.
type Backend interface {
	// Call answers one import: op is its name ("kb_put") and args are its
	// arguments without the output buffer. The error of a call that is refused
	// must wrap an [*Error]; any other is an ErrIO to the agent.
	Call(op string, args ...string) ([]byte, error)
}

// SetBackend makes b the host of this process and returns what puts the one
// before back. Without a backend every call is [ErrUnavailable].
func SetBackend(b Backend) (restore func()) {
	native.mu.Lock()
	defer native.mu.Unlock()
	before := native.backend
	native.backend = b
	return func() {
		native.mu.Lock()
		defer native.mu.Unlock()
		native.backend = before
	}
}

// A standIn does the host's half of the response protocol.
type standIn struct {
	mu      sync.Mutex
	backend Backend
	pending []byte // what responseRead has yet to give
}

// native is the host where there are no imports: like them it belongs to the
// process, not to a caller.
var native standIn

func (s *standIn) call(out unsafe.Pointer, room uint32, op string, args ...string) int64 {
	s.mu.Lock()
	b := s.backend
	s.pending = nil
	s.mu.Unlock()
	var response []byte
	err := error(&Error{Op: op, Errno: ErrUnavailable, Hint: "not run by a host"})
	if b != nil {
		for i, a := range args {
			args[i] = strings.Clone(a) // what the agent lent ends with the call
		}
		response, err = b.Call(op, args...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			e = &Error{Errno: ErrIO, Hint: err.Error()}
		}
		s.pending = account(e)
		return -int64(e.Errno)
	}
	if len(response) <= int(room) {
		copy(unsafe.Slice((*byte)(out), room), response)
	} else {
		s.pending = append([]byte(nil), response...)
	}
	return int64(len(response))
}

func (s *standIn) read(out unsafe.Pointer, room uint32) int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := copy(unsafe.Slice((*byte)(out), room), s.pending)
	s.pending = s.pending[n:]
	return int32(n)
}

// account is the JSON that the host gives for an error.
func account(e *Error) []byte {
	var w jsonlite.Writer
	w.Object()
	w.Key("error").String(e.Errno.Error())
	w.Key("capability").String(e.Capability)
	w.Key("reason").String(e.Reason)
	w.Key("hint").String(e.Hint)
	w.End()
	return w.Bytes()
}
