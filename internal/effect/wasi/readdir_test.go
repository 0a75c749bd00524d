package wasi_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
)

// list reads a directory as a libc does, with a buffer of size bytes.
func (g *guest) list(fd, size uint64) []string {
	g.t.Helper()
	var names []string
	for cookie := uint64(0); ; {
		g.ok("fd_readdir", fd, atData, size, cookie, atOut)
		used := uint64(g.u32(atOut))
		if used > size {
			g.t.Fatalf("used %d of %d", used, size)
		}
		got := 0
		for b := g.mem[atData : atData+used]; len(b) >= 24; {
			n := int(binary.LittleEndian.Uint32(b[16:]))
			if len(b) < 24+n {
				break
			}
			cookie = binary.LittleEndian.Uint64(b)
			names = append(names, string(b[24:24+n]))
			b = b[24+n:]
			got++
		}
		if used < size {
			return names
		}
		if got == 0 {
			size *= 2 // not even one fits
		}
	}
}

// The law: whatever the buffer, the same entries, each once.
func TestReaddirWithAnyBuffer(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.Quiet = true
	want := []string{".", ".."}
	for i := range 300 {
		name := fmt.Sprintf("%03d-%s", i, strings.Repeat("n", i%40))
		g.fs.WriteFile("/d/"+name, "")
		want = append(want, name)
	}
	fd := g.open(open{path: "d", oflags: oDirectory})
	for _, size := range []uint64{1, 23, 24, 25, 31, 64, 255, 256, 257, 4096, 16384, 30000} {
		if got := g.list(fd, size); !slices.Equal(got, want) {
			t.Fatalf("buffer of %d: %d entries: %.200v", size, len(got), got)
		}
	}
}

func TestReaddirEntries(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/d/file", "x")
	fd := g.open(open{path: "d", oflags: oDirectory})
	g.ok("fd_readdir", fd, atData, 24+4, 2, atOut) // from the third on, exactly
	e := g.mem[atData:]
	if g.u32(atOut) != 28 || binary.LittleEndian.Uint64(e) != 3 || binary.LittleEndian.Uint32(e[16:]) != 4 ||
		e[20] != byte(wasi.TypeRegular) || string(e[24:28]) != "file" || binary.LittleEndian.Uint64(e[8:]) == 0 {
		t.Errorf("entry is % x", e[:28])
	}
	g.ok("fd_readdir", fd, atData, 64, 3, atOut)
	if g.u32(atOut) != 0 {
		t.Errorf("%d bytes after the end", g.u32(atOut))
	}
	g.ok("fd_readdir", fd, atData, 64, 1<<63, atOut)
	g.ok("fd_readdir", fd, atData, 0, 0, atOut)
	g.unchanged(func() {
		g.want(wasi.EFAULT, "fd_readdir", fd, page-8, 64, 0, atOut)
		g.want(wasi.EFAULT, "fd_readdir", fd, atData, 64, 0, page-3)
		g.want(wasi.ENOTDIR, "fd_readdir", 1, atData, 64, 0, atOut)
	})
}
