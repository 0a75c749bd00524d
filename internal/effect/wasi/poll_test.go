package wasi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/effect/wasi"
)

// sub is one subscription, and what comes of it.
type sub struct {
	kind    byte
	clock   uint32
	timeout uint64
	flags   uint16
	fd      uint32
}

type answer struct {
	userdata uint64
	errno    wasi.Errno
	kind     byte
	nbytes   uint64
	flags    uint16
}

const atSubs = 0x4000

func (g *guest) poll(subs ...sub) ([]answer, error) {
	g.t.Helper()
	for i, s := range subs {
		b := g.mem[atSubs+48*i:][:48]
		clear(b)
		binary.LittleEndian.PutUint64(b, uint64(100+i))
		b[8] = s.kind
		if s.kind == 0 {
			binary.LittleEndian.PutUint32(b[16:], s.clock)
			binary.LittleEndian.PutUint64(b[24:], s.timeout)
			binary.LittleEndian.PutUint16(b[40:], s.flags)
		} else {
			binary.LittleEndian.PutUint32(b[16:], s.fd)
		}
	}
	errno, err := g.try("poll_oneoff", atSubs, atData, uint64(len(subs)), atOut)
	if err != nil {
		return nil, err
	}
	if errno != wasi.Success {
		g.t.Fatalf("poll_oneoff: %v", errno)
	}
	var out []answer
	for i := range g.u32(atOut) {
		b := g.mem[atData+32*i:]
		out = append(out, answer{
			userdata: binary.LittleEndian.Uint64(b), errno: wasi.Errno(binary.LittleEndian.Uint16(b[8:])), kind: b[10],
			nbytes: binary.LittleEndian.Uint64(b[16:]), flags: binary.LittleEndian.Uint16(b[24:]),
		})
	}
	return out, nil
}

func (g *guest) polled(want []answer, subs ...sub) {
	g.t.Helper()
	got, err := g.poll(subs...)
	if err != nil {
		g.t.Fatal(err)
	}
	if len(got) != len(want) {
		g.t.Fatalf("events %+v, want %+v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			g.t.Errorf("event %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestPollDescriptors(t *testing.T) {
	g := newGuest(t, wasi.Config{Stdin: strings.NewReader("abc")})
	g.fs.WriteFile("/f", "012345")
	fd := uint32(g.open(open{path: "f", base: rAll}))
	g.read(uint64(fd), 2)
	g.polled([]answer{
		{userdata: 100, kind: 1, nbytes: 3},
		{userdata: 101, kind: 2, nbytes: 65535},
		{userdata: 102, kind: 1, nbytes: 4},
		{userdata: 103, kind: 1, errno: wasi.EBADF},
		{userdata: 104, kind: 2, errno: wasi.EBADF},
		{userdata: 105, kind: 3, errno: wasi.EINVAL},
		{userdata: 107, kind: 0, errno: wasi.EINVAL},
		{userdata: 108, kind: 0, errno: wasi.EINVAL},
	}, sub{kind: 1, fd: 0}, sub{kind: 2, fd: 1}, sub{kind: 1, fd: fd}, sub{kind: 1, fd: 99}, sub{kind: 2, fd: 0},
		sub{kind: 3}, sub{kind: 0, timeout: 5}, sub{kind: 0, clock: 9}, sub{kind: 0, flags: 2})
	g.read(0, 9)
	g.polled([]answer{{userdata: 100, kind: 1, flags: 1}}, sub{kind: 1, fd: 0}) // the end is a hangup
	g.polled([]answer{{userdata: 100, errno: wasi.EINVAL}}, sub{clock: 4})
	// a time that is over
	g.polled([]answer{{userdata: 100, kind: 2, nbytes: 65535}, {userdata: 101}}, sub{kind: 2, fd: 1}, sub{clock: 1})
}

func TestPollClocks(t *testing.T) {
	g := newBareGuest(t, wasi.Config{})
	g.polled([]answer{{userdata: 101}, {userdata: 102}},
		sub{timeout: 9e9, clock: 1}, sub{timeout: 5e9, clock: 0}, sub{timeout: 5e9, clock: 1})
	g.ok("clock_time_get", 1, 0, atOut)
	if now := g.u64(atOut); now != 5e9+1000 {
		t.Errorf("slept until %d", now)
	}
	g.polled([]answer{{userdata: 100}}, sub{timeout: 1, clock: 1, flags: 1}) // long past
	g.polled([]answer{{userdata: 100}}, sub{timeout: 8e9, clock: 1, flags: 1})
	g.ok("clock_time_get", 1, 0, atOut)
	if now := g.u64(atOut); now < 8e9 || now > 8e9+10_000 {
		t.Errorf("slept until %d", now)
	}
	g.polled([]answer{{userdata: 100}}, sub{timeout: math.MaxUint64, clock: 1})
}

func TestPollSizes(t *testing.T) {
	g := newBareGuest(t, wasi.Config{})
	g.unchanged(func() {
		g.want(wasi.EINVAL, "poll_oneoff", atSubs, atData, 0, atOut)
		for _, n := range []uint64{1025, 300_000, 1 << 28, 89478486, 1<<32 - 1} { // 89478486*48 wraps to 32
			g.want(wasi.EINVAL, "poll_oneoff", atSubs, atData, n, atOut)
		}
		g.want(wasi.EFAULT, "poll_oneoff", page-47, atData, 1, atOut)
		g.want(wasi.EFAULT, "poll_oneoff", atSubs, page-31, 1, atOut)
		g.want(wasi.EFAULT, "poll_oneoff", atSubs, atData, 1, page-3)
		g.want(wasi.EFAULT, "poll_oneoff", far, far, 1024, far)
	})
	g.mem = make([]byte, 4*page)
	g.ok("poll_oneoff", 0, 2*page, 1024, 4*page-4) // 1,024 clocks that are due
	if g.u32(4*page-4) != 1024 {
		t.Errorf("%d events", g.u32(4*page-4))
	}
}

//rlp:holds K23
func TestSleepEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := errors.New("the time is over")
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, over)
		defer cancel()
		g := newBareGuest(t, wasi.Config{Clock: wasi.NewRealClock()})

		began := time.Now()
		if _, err := g.poll(sub{timeout: uint64(time.Hour), clock: 1}); err != nil || time.Since(began) != time.Hour {
			t.Errorf("control: slept %s, %v", time.Since(began), err)
		}
		g.ctx, cancel = context.WithTimeoutCause(context.Background(), time.Second, over)
		defer cancel()
		_ = ctx
		began = time.Now()
		if _, err := g.poll(sub{timeout: uint64(time.Hour), clock: 1}); !errors.Is(err, over) ||
			time.Since(began) != time.Second {
			t.Errorf("slept %s, %v", time.Since(began), err)
		}
		if _, err := g.poll(sub{timeout: math.MaxUint64, clock: 0, flags: 1}); !errors.Is(err, over) {
			t.Errorf("absolute: %v", err)
		}
	})
}

func TestWaitingForInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		defer w.Close()
		g := newBareGuest(t, wasi.Config{Stdin: r, Clock: wasi.NewRealClock()})
		go func() {
			time.Sleep(time.Second)
			_, _ = w.Write([]byte("abc"))
			time.Sleep(time.Minute)
			_ = w.Close()
		}()
		began := time.Now()
		g.polled([]answer{{userdata: 101}}, sub{kind: 1}, sub{timeout: uint64(time.Second / 2), clock: 1})
		g.polled([]answer{{userdata: 100, kind: 1, nbytes: 3}}, sub{kind: 1}, sub{timeout: uint64(time.Hour), clock: 1})
		if d := time.Since(began); d != time.Second {
			t.Errorf("waited %s", d)
		}
		if got := g.read(0, 2) + "|" + g.read(0, 9); got != "ab|c" {
			t.Errorf("read %q", got)
		}
		g.polled([]answer{{userdata: 100, kind: 1, flags: 1}}, sub{kind: 1}) // no clock: until the end
		if d := time.Since(began); d != time.Minute+time.Second {
			t.Errorf("waited %s", d)
		}
		if got := g.read(0, 9); got != "" {
			t.Errorf("read %q after the end", got)
		}
	})
}

// What came while the guest did something else is there, what it has not taken
// stays as it is, and a stream that has ended is not read again.
func TestInputBesideTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &stream{chunks: make(chan string, 9)}
		g := newBareGuest(t, wasi.Config{Stdin: in})
		look := sub{clock: 1} // a time that is over: the guest does not wait
		g.polled([]answer{{userdata: 101}}, sub{kind: 1}, look)
		in.chunks <- "abc"
		synctest.Wait()
		g.polled([]answer{{userdata: 100, kind: 1, nbytes: 3}, {userdata: 101}}, sub{kind: 1}, look)
		if got := g.read(0, 1); got != "a" {
			t.Errorf("read %q", got)
		}
		in.chunks <- "XYZ"
		g.polled([]answer{{userdata: 100, kind: 1, nbytes: 2}, {userdata: 101}}, sub{kind: 1}, look)
		synctest.Wait()
		if got := g.read(0, 9); got != "bc" {
			t.Errorf("read %q", got)
		}
		g.polled([]answer{{userdata: 100, kind: 1, nbytes: 3}}, sub{kind: 1}) // waits, and no clock is asked
		close(in.chunks)
		if got := g.read(0, 9) + g.read(0, 9) + g.read(0, 9); got != "XYZ" {
			t.Errorf("read %q", got)
		}
		g.polled([]answer{{userdata: 100, kind: 1, flags: 1}}, sub{kind: 1})
		synctest.Wait()
		if in.ends != 1 {
			t.Errorf("read %d times after the end", in.ends)
		}
		last := newBareGuest(t, wasi.Config{Stdin: iotest.DataErrReader(io.MultiReader(strings.NewReader("abc")))})
		last.polled([]answer{{userdata: 100, kind: 1, nbytes: 3}}, sub{kind: 1}) // no hangup while there is something
	})
}

// A stream gives a chunk at a time.
type stream struct {
	chunks chan string
	ends   int
}

func (s *stream) Read(p []byte) (int, error) {
	text, ok := <-s.chunks
	if !ok {
		s.ends++
		return 0, io.EOF
	}
	return copy(p, text), nil
}

//rlp:holds K23
func TestInputThatNeverComesEndsWithTheRun(t *testing.T) {
	for name, wait := range map[string]func(*guest) error{
		"fd_read": func(g *guest) error {
			ptr, n := g.vectors(atData, 8)
			_, err := g.try("fd_read", 0, ptr, n, atOut)
			return err
		},
		"poll": func(g *guest) error {
			_, err := g.poll(sub{kind: 1})
			return err
		},
		"poll with a clock": func(g *guest) error {
			_, err := g.poll(sub{kind: 1}, sub{timeout: uint64(time.Hour), clock: 1})
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			defer w.Close()
			over := errors.New("the time is over")
			g := newBareGuest(t, wasi.Config{Stdin: r, Clock: wasi.NewRealClock()})
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, over)
			defer cancel()
			g.ctx = ctx
			began := time.Now()
			if err := wait(g); !errors.Is(err, over) || time.Since(began) != time.Second {
				t.Errorf("%s: waited %s, %v", name, time.Since(began), err)
			}
		})
	}
}

func TestInputThatFails(t *testing.T) {
	g := newBareGuest(t, wasi.Config{Stdin: io.MultiReader(strings.NewReader("ab"), brokenReader{})})
	if got := g.read(0, 9); got != "ab" {
		t.Errorf("read %q", got)
	}
	ptr, n := g.vectors(atData, 8)
	g.want(wasi.EIO, "fd_read", 0, ptr, n, atOut)
	g.want(wasi.EIO, "fd_read", 0, ptr, n, atOut)
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
