package wasi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/effect/wasi/wasitest"
	"runloop.dev/rlp/internal/engine/abi"
)

// guest plays the part of a module: it has a memory, and calls by name.
type guest struct {
	t     testing.TB
	ctx   context.Context
	sys   *wasi.System
	fs    *wasitest.FS
	funcs map[string]abi.Func
	mem   []byte
	stack [16]uint64
}

const (
	page = 1 << 16
	far  = 0xffff_fff0 // no memory reaches this

	// where tests keep things in guest memory
	atPath, atPath2 = 0x100, 0x1200
	atOut           = 0x2400
	atVectors       = 0x2800
	atData          = 0x8000
)

// newGuest starts a guest on cfg; a nil cfg.FS gets the file system that is
// also the guest's.
func newGuest(t testing.TB, cfg wasi.Config) *guest {
	t.Helper()
	g := &guest{
		t: t, ctx: context.Background(), fs: wasitest.NewFS(), mem: make([]byte, page),
		funcs: map[string]abi.Func{},
	}
	if cfg.FS == nil {
		cfg.FS = g.fs
	}
	g.start(cfg)
	return g
}

// newBareGuest has no files at all.
func newBareGuest(t testing.TB, cfg wasi.Config) *guest {
	t.Helper()
	g := &guest{t: t, ctx: context.Background(), mem: make([]byte, page), funcs: map[string]abi.Func{}}
	g.start(cfg)
	return g
}

func (g *guest) start(cfg wasi.Config) {
	g.t.Helper()
	sys, err := wasi.New(cfg)
	if err != nil {
		g.t.Fatal(err)
	}
	g.sys = sys
	for _, f := range sys.Funcs() {
		g.funcs[f.Name] = f
	}
	g.t.Cleanup(func() {
		sys.Close()
		if g.fs != nil && g.fs.Opened != 0 {
			g.t.Errorf("%d files are still open", g.fs.Opened)
		}
	})
}

// try calls a function and returns its errno or what ends the run.
func (g *guest) try(name string, args ...uint64) (wasi.Errno, error) {
	g.t.Helper()
	f, ok := g.funcs[name]
	if !ok {
		g.t.Fatalf("no function %s", name)
	}
	if len(args) != len(f.Params) {
		g.t.Fatalf("%s takes %d arguments, not %d", name, len(f.Params), len(args))
	}
	clear(g.stack[:])
	copy(g.stack[:], args)
	err := f.Call(g.ctx, g.mem, g.stack[:max(len(args), len(f.Results))])
	return wasi.Errno(g.stack[0]), err
}

// call is try for what must not end the run.
func (g *guest) call(name string, args ...uint64) wasi.Errno {
	g.t.Helper()
	errno, err := g.try(name, args...)
	if err != nil {
		g.t.Fatalf("%s ended the run: %v", name, err)
	}
	return errno
}

// ok is call for what must succeed.
func (g *guest) ok(name string, args ...uint64) {
	g.t.Helper()
	if errno := g.call(name, args...); errno != wasi.Success {
		g.t.Fatalf("%s%v: %v", name, args, errno)
	}
}

// want is call for what must answer an errno.
func (g *guest) want(errno wasi.Errno, name string, args ...uint64) {
	g.t.Helper()
	if got := g.call(name, args...); got != errno {
		g.t.Errorf("%s%v: %v, want %v", name, args, got, errno)
	}
}

// put writes text at ptr and returns the pair that functions take.
func (g *guest) put(ptr uint64, text string) (uint64, uint64) {
	copy(g.mem[ptr:], text)
	return ptr, uint64(len(text))
}

func (g *guest) u32(ptr uint64) uint32 { return binary.LittleEndian.Uint32(g.mem[ptr:]) }
func (g *guest) u64(ptr uint64) uint64 { return binary.LittleEndian.Uint64(g.mem[ptr:]) }

// vectors writes pairs of pointer and length.
func (g *guest) vectors(pairs ...uint64) (ptr, n uint64) {
	for i, v := range pairs {
		binary.LittleEndian.PutUint32(g.mem[atVectors+4*i:], uint32(v))
	}
	return atVectors, uint64(len(pairs) / 2)
}

// open says how path_open is called.
type open struct {
	dir             uint64 // 0 is the preopen
	path            string
	oflags, fdflags uint64
	base, inherit   uint64 // 0 is everything
	noFollow        bool
}

const (
	oCreate, oDirectory, oExclusive, oTrunc = 1, 2, 4, 8

	fAppend, fNonblock = 1, 4

	rRead, rSeek, rSetFlags, rTell, rWrite = 1 << 1, 1 << 2, 1 << 3, 1 << 5, 1 << 6
	rReaddir, rStat, rSetSize, rAllocate   = 1 << 14, 1 << 21, 1 << 22, 1 << 8
	rAll                                   = 1<<29 - 1
)

func (g *guest) tryOpen(o open) (fd uint64, errno wasi.Errno) {
	g.t.Helper()
	if o.dir == 0 {
		o.dir = 3
	}
	if o.base == 0 {
		o.base = rAll &^ rWrite
	}
	if o.inherit == 0 {
		o.inherit = rAll
	}
	look := uint64(1)
	if o.noFollow {
		look = 0
	}
	ptr, n := g.put(atPath, o.path)
	errno = g.call("path_open", o.dir, look, ptr, n, o.oflags, o.base, o.inherit, o.fdflags, atOut)
	return uint64(g.u32(atOut)), errno
}

func (g *guest) open(o open) uint64 {
	g.t.Helper()
	fd, errno := g.tryOpen(o)
	if errno != wasi.Success {
		g.t.Fatalf("path_open %+v: %v", o, errno)
	}
	return fd
}

// read is one fd_read of at most n bytes.
func (g *guest) read(fd, n uint64) string {
	g.t.Helper()
	ptr, count := g.vectors(atData, n)
	g.ok("fd_read", fd, ptr, count, atOut)
	return string(g.mem[atData : atData+g.u32(atOut)])
}

// write is one fd_write.
func (g *guest) write(fd uint64, text string) {
	g.t.Helper()
	p, n := g.put(atData, text)
	ptr, count := g.vectors(p, n)
	g.ok("fd_write", fd, ptr, count, atOut)
	if got := g.u32(atOut); uint64(got) != n {
		g.t.Fatalf("wrote %d of %d bytes", got, n)
	}
}

// unchanged runs f and fails if guest memory changed.
func (g *guest) unchanged(f func()) {
	g.t.Helper()
	before := bytes.Clone(g.mem)
	f()
	if !bytes.Equal(before, g.mem) {
		g.t.Error("guest memory was written")
	}
}
