package wasi

import (
	"context"
	"io"

	"runloop.dev/rlp/internal/engine/abi"
)

// args_get(argv, argv_buf)
func argsGet(s *System, _ context.Context, m memory, a []uint64) Errno {
	n, errno := s.args.get(m, a)
	s.move(n)
	return errno
}

// args_sizes_get(argc, argv_buf_size)
func argsSizesGet(s *System, _ context.Context, m memory, a []uint64) Errno {
	return s.args.sizes(m, a)
}

// environ_get(environ, environ_buf)
func environGet(s *System, _ context.Context, m memory, a []uint64) Errno {
	n, errno := s.env.get(m, a)
	s.move(n)
	return errno
}

// environ_sizes_get(count, buf_size)
func environSizesGet(s *System, _ context.Context, m memory, a []uint64) Errno {
	return s.env.sizes(m, a)
}

// proc_exit(code)
func procExit(s *System, _ context.Context, _ memory, a []uint64) Errno {
	return s.stop(&abi.Exit{Code: uint32(a[0])})
}

// proc_raise(signal): a guest has no signals.
func procRaise(*System, context.Context, memory, []uint64) Errno { return ENOSYS }

// sched_yield: there is no other thread.
func schedYield(*System, context.Context, memory, []uint64) Errno { return Success }

// randomChunk is how much randomness is made between two looks at the deadline.
const randomChunk = 64 << 10

// random_get(buf, len)
func randomGet(s *System, ctx context.Context, m memory, a []uint64) Errno {
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
func sockAny(s *System, _ context.Context, _ memory, a []uint64) Errno {
	if _, errno := s.fds.get(a[0]); errno != Success {
		return errno
	}
	return ENOTSOCK
}

// clock_res_get(id, resolution)
func clockResGet(s *System, _ context.Context, m memory, a []uint64) Errno {
	out, ok := m.at(uint32(a[1]), 8)
	if !ok {
		return EFAULT
	}
	if !s.useClock("clock_res_get") {
		return EIO
	}
	ns, errno := s.clock.Res(ClockID(uint32(a[0])))
	if errno != Success {
		return errno
	}
	putU64(out, ns)
	return Success
}

// clock_time_get(id, precision, time)
func clockTimeGet(s *System, _ context.Context, m memory, a []uint64) Errno {
	out, ok := m.at(uint32(a[2]), 8)
	if !ok {
		return EFAULT
	}
	if !s.useClock("clock_time_get") {
		return EIO
	}
	ns, errno := s.clock.Now(ClockID(uint32(a[0])))
	if errno != Success {
		return errno
	}
	putU64(out, ns)
	return Success
}
