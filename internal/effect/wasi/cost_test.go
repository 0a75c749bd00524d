package wasi_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
)

// What a call is charged for besides its price are the bytes that it moved.
//
//rlp:holds K35
func TestCallsAreChargedByTheirLengths(t *testing.T) {
	g := newGuest(t, wasi.Config{Args: []string{"agent", "x"}, Env: []string{"A=1"}, Stdin: strings.NewReader("input")})
	g.fs.MkdirAll("/data")
	g.fs.WriteFile("/data/file", strings.Repeat("f", 500))
	path, n := g.put(atPath, "data/file")
	new, newLen := g.put(atPath2, "new")
	newer, newerLen := g.put(atPath2+8, "newer")
	fd := uint64(4)
	for _, c := range []struct {
		name string
		args []uint64
		want int64
	}{
		{"args_get", []uint64{atOut, atData}, int64(len("agent\x00x\x00")) + 2*4},
		{"path_filestat_get", []uint64{3, 0, path, n, atOut}, int64(n)},
		{"path_open", []uint64{3, 0, path, n, 0, 1 << 1, 0, 0, atOut}, int64(n)},
		{"fd_read", []uint64{fd, atVectors, 1, atOut}, 300},
		{"fd_read", []uint64{fd, atVectors, 1, atOut}, 200},
		{"fd_read", []uint64{0, atVectors, 1, atOut}, 5},
		{"fd_write", []uint64{1, atVectors, 1, atOut}, 300},
		{"random_get", []uint64{atData, 1000}, 1000},
		{"random_get", []uint64{far, 1000}, 0},
		{"clock_time_get", []uint64{0, 0, atOut}, 0},
		{"fd_close", []uint64{fd}, 0},
		{"environ_get", []uint64{atOut, atData}, int64(len("A=1\x00")) + 4},
		{"path_symlink", []uint64{path, n, 3, new, newLen}, int64(newLen)},
		{"path_readlink", []uint64{3, new, newLen, atData, 100, atOut}, int64(newLen + n)},
		{"path_rename", []uint64{3, new, newLen, 3, newer, newerLen}, int64(newLen + newerLen)},
		{"fd_readdir", []uint64{3, atData, 60, 0, atOut}, 24 + 1 + 24 + 2 + 9},
		{"poll_oneoff", []uint64{atSubs, atData, 2, atOut}, 2 * (48 + 32)},
	} {
		g.vectors(atData, 300)
		f := g.funcs[c.name]
		*f.Moved = 0
		if _, err := g.try(c.name, c.args...); err != nil || *f.Moved != c.want {
			t.Errorf("%s%v: %v, moved %d, want %d", c.name, c.args, err, *f.Moved, c.want)
		}
	}
	for name, f := range g.funcs {
		want := int64(64)
		switch {
		case strings.HasPrefix(name, "path_"):
			want = 4096
		case strings.HasSuffix(name, "sync"):
			want = 65536
		}
		if f.Cost != want {
			t.Errorf("%s costs %d, not %d", name, f.Cost, want)
		}
	}
}

// A read or write of much looks at the end of the run between its chunks.
func TestMuchIsMovedInChunks(t *testing.T) {
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(context.Background())
	taken := 0
	g := newGuest(t, wasi.Config{Stdout: writerFunc(func(p []byte) (int, error) {
		if taken += len(p); taken >= 2<<20 {
			cancel(over)
		}
		return len(p), nil
	})})
	g.ctx, g.mem = ctx, make([]byte, 5<<20)
	ptr, n := g.vectors(atData, 4<<20)
	if _, err := g.try("fd_write", 1, ptr, n, atOut); !errors.Is(err, over) || taken != 2<<20 {
		t.Errorf("%v after %d bytes", err, taken)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
