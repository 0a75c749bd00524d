package wasi

import (
	"context"
	"fmt"
	"io"
	"strings"

	"runloop.dev/rlp/internal/engine/abi"
)

// stringTable is a list of strings as C has it: one run of NUL-ended bytes and
// where each begins.
type stringTable struct {
	text   []byte
	starts []uint32
}

// maxStrings bounds the text of a table, as ARG_MAX does.
const maxStrings = 1 << 20

func newStringTable(what string, list []string) (stringTable, error) {
	var t stringTable
	for _, v := range list {
		if strings.IndexByte(v, 0) >= 0 {
			return t, fmt.Errorf("%w: %s with a NUL byte", ErrConfig, what)
		}
		t.starts = append(t.starts, uint32(len(t.text)))
		t.text = append(append(t.text, v...), 0)
		if len(t.text) > maxStrings {
			return t, fmt.Errorf("%w: more than %d bytes of %ss", ErrConfig, maxStrings, what)
		}
	}
	return t, nil
}

func (t *stringTable) get(m memory, a []uint64) (moved int, errno Errno) {
	ptrs, ok1 := m.span(uint32(a[0]), 4*uint64(len(t.starts)))
	text, ok2 := m.span(uint32(a[1]), uint64(len(t.text)))
	if !ok1 || !ok2 {
		return 0, EFAULT
	}
	copy(text, t.text)
	for i, start := range t.starts {
		putU32(ptrs[4*i:], uint32(a[1])+start)
	}
	return len(text) + len(ptrs), Success
}

func (t *stringTable) sizes(m memory, a []uint64) Errno {
	count, ok1 := m.at(uint32(a[0]), 4)
	size, ok2 := m.at(uint32(a[1]), 4)
	if !ok1 || !ok2 {
		return EFAULT
	}
	putU32(count, uint32(len(t.starts)))
	putU32(size, uint32(len(t.text)))
	return Success
}

// args_get(argv, argv_buf)
func (s *System) argsGet(_ context.Context, m memory, a []uint64) Errno {
	n, errno := s.args.get(m, a)
	s.move(n)
	return errno
}

// args_sizes_get(argc, argv_buf_size)
func (s *System) argsSizesGet(_ context.Context, m memory, a []uint64) Errno {
	return s.args.sizes(m, a)
}

// environ_get(environ, environ_buf)
func (s *System) environGet(_ context.Context, m memory, a []uint64) Errno {
	n, errno := s.env.get(m, a)
	s.move(n)
	return errno
}

// environ_sizes_get(count, buf_size)
func (s *System) environSizesGet(_ context.Context, m memory, a []uint64) Errno {
	return s.env.sizes(m, a)
}

// proc_exit(code)
func (s *System) procExit(_ context.Context, _ memory, a []uint64) Errno {
	return s.stop(&abi.Exit{Code: uint32(a[0])})
}

// proc_raise(signal): a guest has no signals.
func (s *System) procRaise(context.Context, memory, []uint64) Errno { return ENOSYS }

// sched_yield: there is no other thread.
func (s *System) schedYield(context.Context, memory, []uint64) Errno { return Success }

// randomChunk is how much randomness is made between two looks at the deadline.
const randomChunk = 64 << 10

// random_get(buf, len)
func (s *System) randomGet(ctx context.Context, m memory, a []uint64) Errno {
	buf, ok := m.at(uint32(a[0]), uint32(a[1]))
	if !ok {
		return EFAULT
	}
	s.move(len(buf))
	for len(buf) > 0 {
		if ctx.Err() != nil {
			return s.stop(context.Cause(ctx))
		}
		n := min(len(buf), randomChunk)
		if _, err := io.ReadFull(s.random, buf[:n]); err != nil {
			return EIO
		}
		buf = buf[n:]
	}
	return Success
}

// sock_*: no descriptor is a socket.
func (s *System) sockAny(_ context.Context, _ memory, a []uint64) Errno {
	if _, errno := s.fds.get(a[0]); errno != Success {
		return errno
	}
	return ENOTSOCK
}
