package wasi

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"time"
)

const (
	subscriptionSize = 48
	eventSize        = 32
	maxSubscriptions = 1024

	eventClock   = 0
	eventFDRead  = 1
	eventFDWrite = 2

	clockAbsolute = 1 // subclockflags
	hangup        = 1 // eventrwflags
)

// poll_oneoff(in, out, nsubscriptions, nevents)
func pollOneoff(s *System, ctx context.Context, m memory, a []uint64) Errno {
	n := uint32(a[2])
	if n == 0 || n > maxSubscriptions {
		return EINVAL
	}
	subs, ok1 := m.span(uint32(a[0]), subscriptionSize*uint64(n))
	out, ok2 := m.span(uint32(a[1]), eventSize*uint64(n))
	count, ok3 := m.at(uint32(a[3]), 4)
	if !ok1 || !ok2 || !ok3 {
		return EFAULT
	}
	s.move(len(subs) + len(out))
	s.events = s.events[:0]
	for ; len(subs) > 0; subs = subs[subscriptionSize:] {
		e := s.subscribe(subs)
		if s.end != nil {
			return EIO
		}
		s.events = append(s.events, e)
	}
	if err := s.await(ctx); err != nil {
		return s.stop(err)
	}
	written := uint32(0)
	for i := range s.events {
		if e := &s.events[i]; e.ready {
			e.put(out[eventSize*written:])
			written++
		}
	}
	putU32(count, written)
	return Success
}

// subscribe reads one subscription and finds out whether it is due already.
func (s *System) subscribe(sub []byte) event {
	e := event{userdata: binary.LittleEndian.Uint64(sub), kind: sub[8]}
	switch e.kind {
	case eventClock:
		s.subscribeClock(&e, sub[16:])
	case eventFDRead, eventFDWrite:
		s.subscribeFD(&e, binary.LittleEndian.Uint32(sub[16:]))
	default:
		e.fail(EINVAL)
	}
	return e
}

func (e *event) fail(errno Errno) { e.ready, e.errno = true, errno }

func (s *System) subscribeClock(e *event, sub []byte) {
	s.useClock("poll_oneoff") // which may end the run
	id := ClockID(binary.LittleEndian.Uint32(sub))
	timeout := binary.LittleEndian.Uint64(sub[8:])
	flags := binary.LittleEndian.Uint16(sub[24:])
	if flags&^clockAbsolute != 0 {
		e.fail(EINVAL)
		return
	}
	if flags&clockAbsolute != 0 || id >= numClocks {
		now, errno := s.clock.Now(id)
		if errno != Success {
			e.fail(errno)
			return
		}
		timeout -= min(timeout, now)
	}
	e.after = time.Duration(min(timeout, math.MaxInt64))
	e.ready = e.after == 0
}

func (s *System) subscribeFD(e *event, fd uint32) {
	need := rightFDRead
	if e.kind == eventFDWrite {
		need = rightFDWrite
	}
	d, errno := s.fds.use(uint64(fd), need)
	switch {
	case errno != Success:
		e.fail(errno)
	case e.kind == eventFDWrite:
		e.ready, e.nbytes = true, math.MaxUint16
	case d.in != nil:
		e.in = d.in
		e.settle()
	default:
		e.ready, e.nbytes = true, d.remaining()
	}
}

func (e *event) settle() {
	n, ended := e.in.poll()
	e.ready, e.nbytes = n > 0 || ended, uint64(n)
	if ended {
		e.flags = hangup
	}
}

func (d *descriptor) remaining() uint64 {
	st, errno := d.file.Stat()
	if errno != Success {
		return 0
	}
	pos, errno := d.file.Lseek(0, io.SeekCurrent)
	if errno != Success {
		return 0
	}
	return st.Size - min(uint64(max(pos, 0)), st.Size)
}

// await waits for the first of the subscriptions. Its error ends the run.
func (s *System) await(ctx context.Context) error {
	first, timed := time.Duration(math.MaxInt64), false
	var in *input
	for i := range s.events {
		e := &s.events[i]
		switch {
		case e.ready:
			return context.Cause(ctx)
		case e.in != nil:
			in = e.in
		default:
			first, timed = min(first, e.after), true
		}
	}
	slept, err := s.waitFor(ctx, in, first, timed)
	if err != nil {
		return err
	}
	for i := range s.events {
		e := &s.events[i]
		if e.in != nil {
			e.settle()
		} else {
			e.ready = slept && e.after <= first
		}
	}
	return nil
}

// waitFor sleeps d when timed, or until in has something, whichever is first,
// and reports whether the time is over.
func (s *System) waitFor(ctx context.Context, in *input, d time.Duration, timed bool) (bool, error) {
	if in == nil {
		return true, s.clock.Sleep(ctx, d)
	}
	if !timed {
		select {
		case c := <-in.ready:
			in.settle(c)
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	sctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- s.clock.Sleep(sctx, d) }()
	select {
	case c := <-in.ready:
		in.settle(c)
		cancel()
		return <-over == nil, context.Cause(ctx)
	case err := <-over:
		return true, err
	}
}

func (e *event) put(out []byte) {
	putU64(out, e.userdata)
	putU64(out[8:], uint64(e.errno)|uint64(e.kind)<<16)
	putU64(out[16:], e.nbytes)
	putU64(out[24:], uint64(e.flags))
}
