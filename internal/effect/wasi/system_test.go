package wasi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/engine/abi"
)

// The signatures are the specification's (i is i32, I is i64), written out a
// second time and by hand.
func TestEveryFunctionHasItsSignature(t *testing.T) {
	want := strings.Fields(`
		args_get(ii)i args_sizes_get(ii)i environ_get(ii)i environ_sizes_get(ii)i
		clock_res_get(ii)i clock_time_get(iIi)i
		fd_advise(iIIi)i fd_allocate(iII)i fd_close(i)i fd_datasync(i)i
		fd_fdstat_get(ii)i fd_fdstat_set_flags(ii)i fd_fdstat_set_rights(iII)i
		fd_filestat_get(ii)i fd_filestat_set_size(iI)i fd_filestat_set_times(iIIi)i
		fd_pread(iiiIi)i fd_prestat_get(ii)i fd_prestat_dir_name(iii)i fd_pwrite(iiiIi)i
		fd_read(iiii)i fd_readdir(iiiIi)i fd_renumber(ii)i fd_seek(iIii)i fd_sync(i)i fd_tell(ii)i fd_write(iiii)i
		path_create_directory(iii)i path_filestat_get(iiiii)i path_filestat_set_times(iiiiIIi)i
		path_link(iiiiiii)i path_open(iiiiiIIii)i path_readlink(iiiiii)i path_remove_directory(iii)i
		path_rename(iiiiii)i path_symlink(iiiii)i path_unlink_file(iii)i
		poll_oneoff(iiii)i proc_exit(i) proc_raise(i)i sched_yield()i random_get(ii)i
		sock_accept(iii)i sock_recv(iiiiii)i sock_send(iiiii)i sock_shutdown(ii)i`)
	g := newGuest(t, wasi.Config{})
	var got []string
	letter := map[abi.Type]string{abi.I32: "i", abi.I64: "I"}
	for _, f := range g.sys.Funcs() {
		s := f.Name + "("
		for _, p := range f.Params {
			s += letter[p]
		}
		s += ")"
		for _, r := range f.Results {
			s += letter[r]
		}
		if f.Module != "wasi_snapshot_preview1" {
			t.Errorf("%s is in module %s", f.Name, f.Module)
		}
		got = append(got, s)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("functions are\n%s", strings.Join(got, "\n"))
	}
}

func TestArgumentsAndEnvironment(t *testing.T) {
	g := newBareGuest(t, wasi.Config{Args: []string{"agent", "", "größe"}, Env: []string{"A=1", "B="}})
	check := func(prefix, want string, n uint32) {
		g.ok(prefix+"_sizes_get", atOut, atOut+4)
		if g.u32(atOut) != n || g.u32(atOut+4) != uint32(len(want)) {
			t.Errorf("%s sizes are %d, %d; want %d, %d", prefix, g.u32(atOut), g.u32(atOut+4), n, len(want))
		}
		g.ok(prefix+"_get", atPath, atData)
		if got := string(g.mem[atData : atData+len(want)]); got != want {
			t.Errorf("%s is %q, want %q", prefix, got, want)
		}
		if first := g.u32(atPath); first != atData {
			t.Errorf("%s: first pointer is %#x", prefix, first)
		}
	}
	check("args", "agent\x00\x00größe\x00", 3)
	if p := g.u32(atPath + 4); p != atData+6 {
		t.Errorf("second pointer is %#x", p)
	}
	check("environ", "A=1\x00B=\x00", 2)
	g.unchanged(func() {
		g.want(wasi.EFAULT, "args_get", atOut, page-4)
		g.want(wasi.EFAULT, "args_get", page-4, atOut)
		g.want(wasi.EFAULT, "args_sizes_get", atOut, far)
		g.want(wasi.EFAULT, "args_sizes_get", far, atOut)
		g.want(wasi.EFAULT, "environ_get", far, far)
		g.want(wasi.EFAULT, "environ_sizes_get", far, far)
	})
}

func TestWhatAGuestCannotBeGivenIsRefused(t *testing.T) {
	for name, cfg := range map[string]wasi.Config{
		"NUL in an argument":    {Args: []string{"a\x00b"}},
		"NUL in the environ":    {Env: []string{"A=\x00"}},
		"entry without =":       {Env: []string{"A"}},
		"entry without name":    {Env: []string{"=b"}},
		"more text than ARGMAX": {Args: []string{strings.Repeat("x", 1<<20)}},
	} {
		if _, err := wasi.New(cfg); !errors.Is(err, wasi.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

//rlp:holds K37
func TestExitIsAnExitWhateverTheCode(t *testing.T) {
	g := newBareGuest(t, wasi.Config{})
	for _, code := range []uint64{0, 1, 78, 124, 137, 138, 0xefff_ffff, 0xffff_ffff} {
		_, err := g.try("proc_exit", code)
		exit, ok := err.(*abi.Exit)
		if !ok || uint64(exit.Code) != code {
			t.Errorf("proc_exit(%d) is %v", code, err)
		}
	}
}

//rlp:holds K14
func TestNoSockets(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	for name, args := range map[string][]uint64{
		"sock_accept": {0, 0, atOut}, "sock_recv": {0, 0, 0, 0, atOut, atOut},
		"sock_send": {0, 0, 0, 0, atOut}, "sock_shutdown": {0, 0},
	} {
		for _, fd := range []uint64{0, 1, 2, 3} {
			args[0] = fd
			g.want(wasi.ENOTSOCK, name, args...)
		}
		args[0] = 4
		g.want(wasi.EBADF, name, args...)
	}
}

func TestSignalsAndThreads(t *testing.T) {
	g := newBareGuest(t, wasi.Config{})
	g.want(wasi.ENOSYS, "proc_raise", 9)
	g.ok("sched_yield")
}

type counter struct{ reads, most int }

func (c *counter) Read(p []byte) (int, error) {
	c.reads++
	c.most = max(c.most, len(p))
	for i := range p {
		p[i] = 'r'
	}
	return len(p), nil
}

func TestRandom(t *testing.T) {
	src := &counter{}
	g := newBareGuest(t, wasi.Config{Random: src})
	g.mem = make([]byte, 1<<20)
	g.ok("random_get", 1, 3)
	if string(g.mem[:5]) != "\x00rrr\x00" {
		t.Errorf("memory is %q", g.mem[:5])
	}
	g.ok("random_get", 0, 1<<20)
	if src.most > 64<<10 {
		t.Errorf("one read of %d bytes", src.most)
	}
	g.want(wasi.EFAULT, "random_get", 1, 1<<20)
	g.want(wasi.EFAULT, "random_get", far, 0xff)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g.ctx, src.reads = ctx, 0
	if _, err := g.try("random_get", 0, 1<<20); !errors.Is(err, context.Canceled) || src.reads != 0 {
		t.Errorf("after the deadline: %v, %d reads", err, src.reads)
	}
}

func TestRandomThatFailsIsAnError(t *testing.T) {
	g := newBareGuest(t, wasi.Config{Random: strings.NewReader("ab")})
	g.want(wasi.EIO, "random_get", 0, 3)
}

func TestRandomDefaultsToTheSystems(t *testing.T) {
	g := newBareGuest(t, wasi.Config{})
	g.ok("random_get", 0, 32)
	g.ok("random_get", 32, 32)
	if bytes.Equal(g.mem[:32], make([]byte, 32)) || bytes.Equal(g.mem[:32], g.mem[32:64]) {
		t.Error("not random")
	}
}

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStandardStreams(t *testing.T) {
	var out, errs bytes.Buffer
	g := newBareGuest(t, wasi.Config{Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &errs})
	g.write(1, "to out")
	g.write(2, "to err")
	if out.String() != "to out" || errs.String() != "to err" {
		t.Errorf("streams got %q, %q", out.String(), errs.String())
	}
	if got := g.read(0, 3) + "|" + g.read(0, 9) + "|" + g.read(0, 9); got != "hel|lo|" {
		t.Errorf("read %q", got)
	}
	ptr, n := g.vectors(atData, 1)
	g.want(wasi.EBADF, "fd_read", 1, ptr, n, atOut)
	g.want(wasi.EBADF, "fd_write", 0, ptr, n, atOut)
	for fd := range uint64(3) {
		g.want(wasi.ESPIPE, "fd_seek", fd, 0, 0, atOut)
		g.want(wasi.ESPIPE, "fd_tell", fd, atOut)
		g.want(wasi.ESPIPE, "fd_pread", fd, ptr, n, 0, atOut)
		g.want(wasi.ESPIPE, "fd_pwrite", fd, ptr, n, 0, atOut)
		g.want(wasi.ESPIPE, "fd_allocate", fd, 0, 1)
		g.want(wasi.ESPIPE, "fd_advise", fd, 0, 1, 0)
		g.want(wasi.EINVAL, "fd_sync", fd)
		g.want(wasi.ENOTDIR, "fd_readdir", fd, atData, 64, 0, atOut)
		g.want(wasi.EBADF, "fd_prestat_get", fd, atOut)
		g.ok("fd_filestat_get", fd, atData)
		g.ok("fd_fdstat_get", fd, atData)
		if kind := g.mem[atData]; kind == 2 { // a terminal, to a libc
			t.Errorf("fd %d is a character device", fd)
		}
	}
}

func TestOutputThatFailsIsAnError(t *testing.T) {
	g := newBareGuest(t, wasi.Config{Stdout: refusing{}})
	ptr, n := g.vectors(atData, 1)
	g.want(wasi.EIO, "fd_write", 1, ptr, n, atOut)
	g.ok("fd_write", 2, ptr, n, atOut) // nobody listens: discarded
}
