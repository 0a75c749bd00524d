package wasi_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
)

// pointers says which arguments of a function point at memory, with the least
// that is touched there; the others make the call succeed.
var pointers = map[string][]struct{ arg, size int }{
	"args_get": {{0, 4}, {1, 2}}, "args_sizes_get": {{0, 4}, {1, 4}},
	"environ_get": {{0, 4}, {1, 4}}, "environ_sizes_get": {{0, 4}, {1, 4}},
	"clock_res_get": {{1, 8}}, "clock_time_get": {{2, 8}},
	"fd_fdstat_get": {{1, 24}}, "fd_filestat_get": {{1, 64}},
	"fd_pread": {{1, 8}, {4, 4}}, "fd_pwrite": {{1, 8}, {4, 4}}, "fd_read": {{1, 8}, {3, 4}}, "fd_write": {{1, 8}, {3, 4}},
	"fd_prestat_get": {{1, 8}}, "fd_prestat_dir_name": {{1, 8}}, "fd_readdir": {{1, 8}, {4, 4}},
	"fd_seek": {{3, 8}}, "fd_tell": {{1, 8}},
	"path_create_directory": {{1, 8}}, "path_filestat_get": {{2, 8}, {4, 64}}, "path_filestat_set_times": {{2, 8}},
	"path_link": {{2, 8}, {5, 8}}, "path_open": {{2, 8}, {8, 4}}, "path_readlink": {{1, 8}, {3, 8}, {5, 4}},
	"path_remove_directory": {{1, 8}}, "path_rename": {{1, 8}, {4, 8}}, "path_symlink": {{0, 8}, {3, 8}},
	"path_unlink_file": {{1, 8}}, "poll_oneoff": {{0, 48}, {1, 32}, {3, 4}}, "random_get": {{0, 8}},
}

// Every pointer of every function: one byte out, far out, and at the edges of
// 32 bits, it is EFAULT and nothing is written. In range it is not EFAULT.
func TestEveryPointerIsChecked(t *testing.T) {
	for name, list := range pointers {
		for _, p := range list {
			g := newGuest(t, wasi.Config{Args: []string{"a"}, Env: []string{"A=b"}, Stdin: strings.NewReader("x")})
			g.fs.WriteFile("/f", "x")
			g.open(open{path: "f", base: rAll}) // 4
			args := sampleArgs(g, name)
			for _, ptr := range []uint64{page - uint64(p.size) + 1, page, page + 1, 1 << 31, 1<<32 - 1, 1<<32 - uint64(p.size)} {
				bad := append([]uint64(nil), args...)
				bad[p.arg] = ptr
				g.unchanged(func() { g.want(wasi.EFAULT, name, bad...) })
			}
			args[p.arg] = page - uint64(p.size)
			clear(g.mem[page-p.size:])
			if errno := g.call(name, args...); errno == wasi.EFAULT {
				t.Errorf("%s: argument %d at the end of memory is EFAULT", name, p.arg)
			}
		}
	}
}

// sampleArgs is a call of name with 8-byte buffers everywhere.
func sampleArgs(g *guest, name string) []uint64 {
	args := make([]uint64, len(g.funcs[name].Params))
	for _, p := range pointers[name] {
		args[p.arg] = atData + uint64(p.arg)*256
		if p.arg+1 < len(args) && p.size == 8 && name != "clock_time_get" {
			args[p.arg+1] = 8
		}
		if strings.HasPrefix(name, "path_") {
			copy(g.mem[args[p.arg]:], "namename")
		}
	}
	switch {
	case name == "fd_prestat_get" || name == "fd_prestat_dir_name" || name == "fd_readdir":
		args[0] = 3
	case name == "path_symlink":
		args[2] = 3
	case name == "path_link":
		args[0], args[4] = 3, 3
	case name == "path_rename":
		args[0], args[3] = 3, 3
	case name == "poll_oneoff":
		args[2] = 1
	case strings.HasPrefix(name, "path_"):
		args[0] = 3
	case strings.HasPrefix(name, "fd_"):
		args[0] = 4
		if strings.Contains(name, "read") || strings.Contains(name, "write") {
			args[2] = 1
		}
	}
	if name == "path_open" {
		args[3], args[4] = 8, oCreate
	}
	return args
}

func TestHotCallsDoNotAllocate(t *testing.T) {
	g := newGuest(t, wasi.Config{Stdin: endless{}})
	g.fs.WriteFile("/work/notes/today.md", strings.Repeat("x", 4096))
	g.fs.Quiet = true
	fd := g.open(open{path: "work/notes/today.md", base: rAll})
	dir := g.open(open{path: "work/notes", oflags: oDirectory})
	path, n := g.put(atPath, "./today.md")
	text, tn := g.put(atPath2, "new")
	ptr, count := g.vectors(atData, 64)
	for name, args := range map[string][]uint64{
		"path_filestat_get": {dir, 1, path, n, atOut},
		"fd_pread":          {fd, ptr, count, 0, atOut},
		"fd_read":           {fd, ptr, count, atOut},
		"fd_seek":           {fd, 0, 0, atOut},
		"fd_filestat_get":   {fd, atOut},
		"clock_time_get":    {0, 0, atOut},
		"fd_write":          {1, ptr, count, atOut},
		"path_unlink_file":  {dir, text, tn},
		"random_get":        {atData, 32},
		"poll_oneoff":       {atPath + 512, atData, 1, atOut},
	} {
		f, stack := g.funcs[name], make([]uint64, 16)
		allocs := testing.AllocsPerRun(100, func() {
			copy(stack, args)
			_ = f.Call(g.ctx, g.mem, stack)
		})
		// The test's own file system splits paths; what it takes alone is not counted.
		if own := ownAllocs(g, name); allocs > own {
			t.Errorf("%s allocates %v times, of which %v are the file system's", name, allocs, own)
		}
	}
}

func ownAllocs(g *guest, name string) float64 {
	switch name {
	case "path_filestat_get":
		return testing.AllocsPerRun(100, func() { _, _ = g.fs.Stat("/work/notes/today.md", false, true) })
	case "path_unlink_file":
		return testing.AllocsPerRun(100, func() { _ = g.fs.Unlink("/work/notes/new", false) })
	}
	return 0
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// FuzzCalls makes one call after another from fuzzed bytes over fuzzed memory:
// nothing panics (the file system does, when handed an unclean path), nothing
// outside of the memory is written, and no table grows past its bound.
func FuzzCalls(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 8 {
		b := make([]byte, 400)
		for i := range b {
			b[i] = byte(r.UintN(256))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g := newGuest(t, wasi.Config{Args: []string{"a"}, Stdin: strings.NewReader("in"), MaxFiles: 12})
		g.fs.WriteFile("/a/b/c", "text")
		g.fs.WriteFile("/f", "text")
		g.fs.Deny("/secret")
		names := make([]string, 0, len(g.funcs))
		for _, fn := range g.sys.Funcs() {
			if fn.Name != "proc_exit" {
				names = append(names, fn.Name)
			}
		}
		const guard = 256
		outer := make([]byte, guard+512+guard)
		g.mem = outer[guard : guard+512 : guard+512]
		copy(g.mem, data)
		copy(g.mem[128:], "a/../b/./c//secret/..x")
		in := &bytesSource{b: data}
		for range 64 {
			name := names[int(in.next())%len(names)]
			args := make([]uint64, len(g.funcs[name].Params))
			for i := range args {
				args[i] = in.argument()
			}
			if _, err := g.try(name, args...); err != nil {
				t.Fatalf("%s%v ended the run: %v", name, args, err)
			}
		}
		if !bytes.Equal(outer[:guard], make([]byte, guard)) || !bytes.Equal(outer[guard+512:], make([]byte, guard)) {
			t.Error("memory of others was written")
		}
		if g.fs.Opened > 12 {
			t.Errorf("%d files are open", g.fs.Opened)
		}
	})
}

// bytesSource turns bytes into arguments, most of them likely.
type bytesSource struct {
	b []byte
	i int
}

func (s *bytesSource) next() byte {
	if len(s.b) == 0 {
		return 0
	}
	s.i++
	return s.b[s.i%len(s.b)] + byte(s.i/len(s.b))
}

func (s *bytesSource) argument() uint64 {
	switch v := uint64(s.next()); v % 8 {
	case 0, 1, 2:
		return v >> 3 % 16 // a descriptor, a flag, a small length
	case 3, 4:
		return 128 + v>>3%64 // a pointer to text
	case 5:
		return v << 1
	case 6:
		return 1<<32 - 1 - v>>3
	default:
		return ^uint64(0) - v>>3
	}
}

func BenchmarkCalls(b *testing.B) {
	g := newGuest(b, wasi.Config{})
	g.fs.WriteFile("/f", strings.Repeat("x", 4096))
	g.fs.Quiet = true
	fd := g.open(open{path: "f", base: rAll})
	ptr, count := g.vectors(atData, 64)
	for _, c := range []struct {
		name string
		args []uint64
	}{
		{"sched_yield", nil},
		{"clock_time_get", []uint64{0, 0, atOut}},
		{"fd_pread", []uint64{fd, ptr, count, 0, atOut}},
		{"fd_filestat_get", []uint64{fd, atOut}},
		{"fd_write", []uint64{1, ptr, count, atOut}},
	} {
		f, stack := g.funcs[c.name], make([]uint64, 16)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				copy(stack, c.args)
				_ = f.Call(g.ctx, g.mem, stack)
			}
		})
	}
}

// A table that is full is full, however often a number is used again.
func TestNumbersUsedAgainAreNoMore(t *testing.T) {
	for _, most := range []int{1, 4, 6} {
		g := newGuest(t, wasi.Config{MaxFiles: most})
		g.fs.WriteFile("/f", "x")
		for range max(most, 4) - 4 {
			g.open(open{path: "f"})
		}
		for range 3 {
			if fd, errno := g.tryOpen(open{path: "f"}); errno != wasi.EMFILE {
				t.Fatalf("of %d: number %d, %v", most, fd, errno)
			}
			if most > 4 {
				g.ok("fd_close", 4)
				g.open(open{path: "f"})
			}
		}
	}
}

// Bounds include their ends.
func TestBoundsIncludeTheirEnds(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.fs.WriteFile("/f", "x")
	long := "/" + strings.Repeat("./", 2046) + "/f" // 4,095 bytes
	if len(long) != 4095 {
		t.Fatalf("%d bytes", len(long))
	}
	g.open(open{path: long})
	if _, errno := g.tryOpen(open{path: "/" + long}); errno != wasi.ENAMETOOLONG {
		t.Errorf("a byte more: %v", errno)
	}
	list := make([]uint64, 2*1024)
	for i := range 1024 {
		list[2*i] = atData
	}
	ptr, n := g.vectors(list...)
	g.ok("fd_write", 1, ptr, n, atOut)
	g.mem = make([]byte, 1<<21+page)
	for i := range 1024 { // 2 GiB less a byte, of one place
		list[2*i], list[2*i+1] = page, 1<<21
	}
	list[1]--
	ptr, n = g.vectors(list...)
	g.ok("fd_write", 1, ptr, n, atOut)
	list[1]++
	ptr, n = g.vectors(list...)
	g.want(wasi.EINVAL, "fd_write", 1, ptr, n, atOut)

	text := strings.Repeat("x", 1<<20-1)
	if _, err := wasi.New(wasi.Config{Args: []string{text}}); err != nil {
		t.Errorf("as much text as may be: %v", err)
	}
	for _, bad := range []wasi.Config{
		{Args: []string{text + "x"}},
		{Args: []string{"\x00x"}},
		{Env: []string{"\x00A=1"}},
	} {
		if _, err := wasi.New(bad); !errors.Is(err, wasi.ErrConfig) {
			t.Errorf("%.10q: %v", bad.Args, err)
		}
	}
}
