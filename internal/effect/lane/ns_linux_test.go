package lane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// newLane opens a lane by its name, with the tests' own program as rlp.
func newLane(t testing.TB, name string, change ...func(*Config)) Lane {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Work: filepath.Join(dir, "agent", "run"), ID: fmt.Sprintf("test-%d-%d", os.Getpid(), time.Now().UnixNano()),
		Self: []string{self(t), "rlp", sandbox.ConfineName},
	}
	for _, c := range change {
		c(&cfg)
	}
	l, err := Open(t.Context(), name, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// eachSandbox runs a test in the lanes in which a program has a root of its own.
func eachSandbox(t *testing.T, test func(t *testing.T, name string)) {
	names := []string{"ns", "bwrap"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { test(t, name) })
	}
}

func run(t testing.TB, l Lane, c *Command) *Result {
	t.Helper()
	r, err := l.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What a program is given is the same in every lane.
//
//rlp:holds K40 K41
func TestAProgramInARoomGetsWhatItIsGiven(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		t.Setenv("OPERATORS", "own")
		l := newLane(t, name)
		c := shell(t, `printf '%s|' "$0" "$@"; env; pwd; umask; id -u; cat; echo err >&2; exit 7`)
		c.Argv = append(c.Argv, "zero", "a b", "", "$HOME;*")
		c.Env = append(c.Env, "ONE=1")
		c.Stdin = []byte("stdin")
		r := run(t, l, c)
		out := string(r.Stdout.Data)
		if r.ExitCode != 7 || r.TimedOut || string(r.Stderr.Data) != "err\n" ||
			!strings.HasPrefix(out, "zero|a b||$HOME;*|") ||
			!strings.HasSuffix(out, "/agent/run\n0077\n65532\nstdin") || !strings.Contains(out, "ONE=1\n") ||
			strings.Contains(out, "OPERATORS") {
			t.Errorf("%+v\n%s\n%s", r, out, r.Stderr.Data)
		}
		if r := run(t, l, shell(t, "kill -TERM $$")); r.ExitCode != 128+15 || r.TimedOut {
			t.Errorf("a signal: %+v", r)
		}
		for _, dir := range []string{"../x", "/etc", "no"} {
			c := shell(t, "true")
			c.Dir = dir
			if _, err := l.Run(t.Context(), c); !errors.Is(err, ErrDir) {
				t.Errorf("%s: %v", dir, err)
			}
		}
	})
}

func BenchmarkNS(b *testing.B) {
	for _, name := range []string{"native", "ns", "bwrap"} {
		b.Run(name, func(b *testing.B) {
			l := newLane(b, name)
			c := &Command{Program: file(b, "/bin/true"), Argv: []string{"true"}, Timeout: time.Minute, MaxOutput: 1 << 10}
			for b.Loop() {
				if r, err := l.Run(b.Context(), c); err != nil || r.ExitCode != 0 {
					b.Fatal(r, err)
				}
			}
		})
	}
}
