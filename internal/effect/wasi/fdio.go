package wasi

import (
	"context"
	"io"
	"math"
)

// fd_read(fd, iovs, iovs_len, nread)
func fdRead(s *System, ctx context.Context, m memory, a []uint64) Errno {
	d, errno := s.fds.use(a[0], rightFDRead)
	if errno != Success {
		return errno
	}
	v, nread, errno := transfer(m, a[1], a[2], a[3])
	if errno != Success {
		return errno
	}
	if d.in != nil {
		return s.readInput(ctx, d, v, nread)
	}
	return s.each(ctx, v, nread, func(p []byte, _ int) (int, Errno) { return d.file.Read(p) })
}

// ioChunk is how much is moved between two looks at the deadline.
const ioChunk = 1 << 20

// each moves the buffers by op, which is also told how much went before, and
// stores how much went in all. It stops at the first that does not go whole.
func (s *System) each(ctx context.Context, v vectors, count []byte, op func(p []byte, before int) (int, Errno)) Errno {
	total := 0
	for i := range v.len() {
		buf, _ := v.at(i) // nothing, where a read before has written over it
		n, errno := s.whole(ctx, buf, total, op)
		total += n
		if errno != Success && total == 0 {
			return errno
		}
		if errno != Success || n < len(buf) {
			break
		}
	}
	s.move(total)
	putU32(count, uint32(total))
	return Success
}

// whole moves one buffer, chunk by chunk. The end of the run ends it.
func (s *System) whole(ctx context.Context, buf []byte, before int, op func(p []byte, before int) (int, Errno)) (int,
	Errno,
) {
	for done := 0; ; {
		part := buf[done:min(len(buf), done+ioChunk)]
		n, errno := op(part, before+done)
		done += n
		if errno != Success || n < len(part) || done == len(buf) {
			return done, errno
		}
		if ctx.Err() != nil {
			return done, s.stop(context.Cause(ctx))
		}
	}
}

// readInput fills the first buffer that is not empty: one read of a stream
// gives what is there, and the next may wait.
func (s *System) readInput(ctx context.Context, d *descriptor, v vectors, nread []byte) Errno {
	n := 0
	for i := range v.len() {
		buf, _ := v.at(i)
		if len(buf) == 0 {
			continue
		}
		var err error
		if n, err = d.in.read(ctx, buf); err != nil {
			if ctx.Err() != nil {
				return s.stop(err)
			}
			return EIO
		}
		break
	}
	s.move(n)
	putU32(nread, uint32(n))
	return Success
}

// fd_pread(fd, iovs, iovs_len, offset, nread)
func fdPread(s *System, ctx context.Context, m memory, a []uint64) Errno {
	d, errno := s.positioned(a[0], rightFDRead)
	if errno != Success {
		return errno
	}
	v, nread, errno := transfer(m, a[1], a[2], a[4])
	if errno != Success {
		return errno
	}
	return s.atOffset(ctx, v, a[3], nread, d.file.Pread)
}

// fd_pwrite(fd, iovs, iovs_len, offset, nwritten)
func fdPwrite(s *System, ctx context.Context, m memory, a []uint64) Errno {
	d, errno := s.positioned(a[0], rightFDWrite)
	if errno != Success {
		return errno
	}
	v, nwritten, errno := transfer(m, a[1], a[2], a[4])
	if errno != Success {
		return errno
	}
	return s.atOffset(ctx, v, a[3], nwritten, d.file.Pwrite)
}

// atOffset is each for an op that takes its place in the file.
func (s *System) atOffset(ctx context.Context, v vectors, offset uint64, out []byte, op func([]byte, int64) (int,
	Errno),
) Errno {
	if offset > math.MaxInt64 {
		return EINVAL
	}
	return s.each(ctx, v, out, func(p []byte, before int) (int, Errno) {
		if offset+uint64(before) > math.MaxInt64 {
			return 0, EINVAL
		}
		return op(p, int64(offset)+int64(before))
	})
}

// fd_write(fd, iovs, iovs_len, nwritten)
func fdWrite(s *System, ctx context.Context, m memory, a []uint64) Errno {
	d, errno := s.fds.use(a[0], rightFDWrite)
	if errno != Success {
		return errno
	}
	v, nwritten, errno := transfer(m, a[1], a[2], a[3])
	if errno != Success {
		return errno
	}
	return s.each(ctx, v, nwritten, func(p []byte, _ int) (int, Errno) { return d.write(p) })
}

// write sends p to the file or the stream.
func (d *descriptor) write(p []byte) (int, Errno) {
	if d.out == nil {
		return d.file.Write(p)
	}
	n, err := d.out.Write(p)
	if n < 0 || n > len(p) {
		return 0, EIO
	}
	if err != nil {
		return n, EIO
	}
	return n, Success
}

func transfer(m memory, ptr, n, out uint64) (vectors, []byte, Errno) {
	v, errno := m.vectors(uint32(ptr), uint32(n))
	if errno != Success {
		return v, nil, errno
	}
	count, ok := m.at(uint32(out), 4)
	if !ok {
		return v, nil, EFAULT
	}
	return v, count, Success
}

// positioned is the descriptor of an operation that needs a place in a file:
// streams have none, and directories are not read.
func (s *System) positioned(fd uint64, need rights) (*descriptor, Errno) {
	d, errno := s.fds.get(fd)
	switch {
	case errno != Success:
		return nil, errno
	case d.in != nil || d.out != nil:
		return nil, ESPIPE
	}
	k, errno := d.fileType()
	switch {
	case errno != Success:
		return nil, errno
	case k == TypeDirectory:
		return nil, EISDIR
	}
	return s.fds.use(fd, need)
}

// fd_seek(fd, offset, whence, newoffset)
func fdSeek(s *System, _ context.Context, m memory, a []uint64) Errno {
	need := rightFDSeek
	if int64(a[1]) == 0 && uint32(a[2]) == uint32(io.SeekCurrent) {
		need = rightFDTell // the specification: seek implies tell, and this is one
	}
	d, errno := s.positioned(a[0], 0)
	if errno != Success {
		return errno
	}
	if d.base&(need|rightFDSeek) == 0 {
		return ENOTCAPABLE
	}
	if uint32(a[2]) > uint32(io.SeekEnd) {
		return EINVAL
	}
	return seekTo(d, m, int64(a[1]), int(uint32(a[2])), a[3])
}

// fd_tell(fd, offset)
func fdTell(s *System, _ context.Context, m memory, a []uint64) Errno {
	d, errno := s.positioned(a[0], 0)
	if errno != Success {
		return errno
	}
	if d.base&(rightFDTell|rightFDSeek) == 0 {
		return ENOTCAPABLE
	}
	return seekTo(d, m, 0, io.SeekCurrent, a[1])
}

func seekTo(d *descriptor, m memory, off int64, whence int, out uint64) Errno {
	result, ok := m.at(uint32(out), 8)
	if !ok {
		return EFAULT
	}
	pos, errno := d.file.Lseek(off, whence)
	if errno != Success {
		return errno
	}
	putU64(result, uint64(pos))
	return Success
}
