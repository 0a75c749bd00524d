package guest_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/effect/wasi/wasitest"
	"runloop.dev/rlp/internal/engine/guest"
)

// goGuest is testdata/goguest, built once.
func goGuest(t testing.TB) []byte {
	t.Helper()
	wasm, err := builtGuest()
	if err != nil {
		t.Fatal("building a Go guest: ", err)
	}
	return wasm
}

var builtGuest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-o", out, "./testdata/goguest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	return os.ReadFile(out)
})

// program is a compiled guest that is run many times, each with a system of
// its own.
type program struct {
	wasm  []byte
	cache string
}

type result struct {
	end         guest.End
	out, errOut string
}

func (p program) run(t *testing.T, cfg wasi.Config, wall time.Duration, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	cfg.Args, cfg.Stdout, cfg.Stderr = append([]string{"agent"}, args...), &out, &errOut
	sys, err := wasi.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	mod := compile(t, guest.Config{Module: p.wasm, Funcs: sys.Funcs(), MemoryBytes: 64 << 20, CacheDir: p.cache})
	end := mod.Run(t.Context(), guest.RunConfig{Wall: wall})
	return result{end, out.String(), errOut.String()}
}

const minute = time.Minute

//rlp:holds K23 K27
func TestGoGuests(t *testing.T) {
	p := program{goGuest(t), newCache(t)}
	for _, c := range []struct {
		args []string
		cfg  wasi.Config
		wall time.Duration
		kind guest.Kind
		code uint32
		out  string
	}{
		{
			args: []string{"hello", "a", "ö"}, cfg: wasi.Config{Env: []string{"B=2", "A=1"}, Stdin: strings.NewReader("input")},
			wall: minute, kind: guest.OK, out: "agent [\"a\" \"ö\"] [\"A=1\" \"B=2\"] \"input\"\n",
		},
		{args: []string{"hello"}, wall: minute, kind: guest.OK, out: "agent [] [] \"\"\n"},
		{args: []string{"clock"}, wall: minute, kind: guest.OK, out: "2022-01-01\n1h0m0s 2h0m0s 3h0m0s 3h0m0s\n"},
		{args: []string{"sleep"}, wall: minute, kind: guest.OK},
		{
			args: []string{"sleep"}, cfg: wasi.Config{Clock: wasi.NewRealClock()}, wall: 300 * time.Millisecond,
			kind: guest.Timeout,
		},
		{args: []string{"spin"}, wall: 300 * time.Millisecond, kind: guest.Timeout},
		{args: []string{"panic"}, wall: minute, kind: guest.Exit, code: 2},
		{args: []string{"network"}, wall: minute, kind: guest.OK, out: "true\n"},
		{
			args: []string{"hello"}, cfg: wasi.Config{Stdin: blocked{}, Clock: wasi.NewRealClock()},
			wall: 300 * time.Millisecond, kind: guest.Timeout,
		},
	} {
		r := p.run(t, c.cfg, c.wall, c.args...)
		if r.end.Kind != c.kind || r.end.ExitCode != c.code || r.out != c.out || r.end.Abandoned {
			t.Errorf("%v: %+v, %q, %q", c.args, r.end, r.out, r.errOut)
		}
	}
	for _, code := range []uint32{1, 77, 124, 137, 138} {
		if r := p.run(t, wasi.Config{}, minute, "exit", strconv.Itoa(int(code))); r.end.Kind != guest.Exit ||
			r.end.ExitCode != code {
			t.Errorf("exit %d: %+v", code, r.end)
		}
	}
	t.Run("files", func(t *testing.T) { p.files(t) })
	t.Run("memory", func(t *testing.T) { p.hog(t) })
}

// blocked is a reader that never gives anything, as a terminal nobody types at.
type blocked struct{}

func (blocked) Read([]byte) (int, error) { select {} }

func (p program) files(t *testing.T) {
	m := wasitest.NewFS()
	m.MkdirAll("/work")
	m.WriteFile("/secret/key", "CANARY")
	m.Deny("/secret")
	r := p.run(t, wasi.Config{FS: m}, minute, "files")
	want := "/work d--------- 0\n/work/a d--------- 0\n/work/a/b d--------- 0\n/work/a/b/one ---------- 3\n" +
		"/work/link L--------- 7\n/work/two ---------- 4\ntwo+ a/b/one 3 true true\n"
	if r.end.Kind != guest.OK || r.out != want {
		t.Errorf("%+v\n%s%s", r.end, r.out, r.errOut)
	}
	if m.Opened != 0 {
		t.Errorf("%d files left open", m.Opened)
	}
	r = p.run(t, wasi.Config{FS: m}, minute, "descriptors")
	if r.end.Kind != guest.OK || r.out != "true true\n" || m.Opened != 0 {
		t.Errorf("%+v %q %q, %d files left open", r.end, r.out, r.errOut, m.Opened)
	}
}

func (p program) hog(t *testing.T) {
	r := p.run(t, wasi.Config{}, minute, "hog")
	if r.end.Kind != guest.Memory || r.end.PeakMemory > 64<<20 || r.end.PeakMemory < 32<<20 || !strings.HasPrefix(r.out,
		"1\n2\n3\n") {
		t.Errorf("%+v, %.40q", r.end, r.out)
	}
}
