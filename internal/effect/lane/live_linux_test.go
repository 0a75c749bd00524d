package lane

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A spoken is a program that runs, with the other ends of the files that it is
// joined to.
type spoken struct {
	t           *testing.T
	in          *os.File
	out, errout *bufio.Reader
	outFile     *os.File
	signals     chan os.Signal
	ended       chan struct{}
	result      *Result
	err         error
}

func speak(t *testing.T, ctx context.Context, l Lane, c *Command) *spoken {
	t.Helper()
	var r, w [3]*os.File
	for i := range r {
		var err error
		if r[i], w[i], err = os.Pipe(); err != nil {
			t.Fatal(err)
		}
	}
	s := &spoken{
		t: t, in: w[0], out: bufio.NewReader(r[1]), errout: bufio.NewReader(r[2]), outFile: r[1],
		signals: make(chan os.Signal, 1), ended: make(chan struct{}),
	}
	c.Live, c.Timeout = &Live{Stdin: r[0], Stdout: w[1], Stderr: w[2], Signals: s.signals}, 0
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(s.ended)
		s.result, s.err = l.Run(ctx, c)
		_, _ = w[1].Close(), w[2].Close()
	}()
	t.Cleanup(func() {
		cancel()
		<-s.ended
		for _, f := range append(r[:], w[0]) {
			_ = f.Close()
		}
	})
	return s
}

func (s *spoken) line() string {
	s.t.Helper()
	line, err := s.out.ReadString('\n')
	if err != nil {
		<-s.ended
		s.t.Fatalf("%q %v; %+v %v", line, err, s.result, s.err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (s *spoken) end() *Result {
	s.t.Helper()
	<-s.ended
	if s.err != nil {
		s.t.Fatal(s.err)
	}
	return s.result
}

// What a program says is heard while it runs, and it hears what is said to it; what
// is kept of that is bounded.
func TestStreamsPassThrough(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		l := newLane(t, name)
		c := shell(t, `readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 | grep -vc pipe:
			while read line; do echo "heard $line"; echo "said $line" >&2; done; echo over; exit 3`)
		c.MaxOutput, c.Stdin = 12, []byte("no\n")
		s := speak(t, t.Context(), l, c)
		if got := s.line(); got != "0" {
			t.Errorf("%s of the files are rlp's own", got)
		}
		for _, word := range []string{"a", "b"} {
			if _, err := s.in.WriteString(word + "\n"); err != nil {
				t.Fatal(err)
			}
			if got := s.line(); got != "heard "+word {
				t.Errorf("%q", got)
			}
			if got, err := s.errout.ReadString('\n'); err != nil || got != "said "+word+"\n" {
				t.Errorf("%q %v", got, err)
			}
		}
		if err := s.in.Close(); err != nil {
			t.Fatal(err)
		}
		if got := s.line(); got != "over" {
			t.Errorf("%q", got)
		}
		r := s.end()
		if r.ExitCode != 3 || r.Signal != 0 || r.TimedOut ||
			string(r.Stdout.Data) != "0\nheard a\nhe" || !r.Stdout.Cut ||
			string(r.Stderr.Data) != "said a\nsaid " || !r.Stderr.Cut {
			t.Errorf("%+v\n%s\n%s", r, r.Stdout.Data, r.Stderr.Data)
		}
		c = shell(t, "cat") // nothing of rlp's is read
		c.Stdin, c.Live, c.Timeout = []byte("own"), &Live{}, 0
		if r := run(t, l, c); string(r.Stdout.Data) != "own" {
			t.Errorf("%+v", r)
		}
		c = shell(t, "cat")
		c.Live, c.Timeout = &Live{}, 0
		if r := run(t, l, c); len(r.Stdout.Data) != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// Whoever reads nothing, whoever writes nothing, and whoever lives on holds up
// nobody.
func TestStreamsThatPassHoldUpNothing(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		l := newLane(t, name)
		dir := shared(t)
		c := shell(t, "cd "+dir+leaving+"exit 4") // its stdin stays open, its stdout is others' too
		c.Folders = []Folder{{Path: dir, Access: ReadWrite}}
		s := speak(t, t.Context(), l, c)
		if got := s.line(); got != "begun" {
			t.Fatal(got)
		}
		if r := s.end(); r.ExitCode != 4 {
			t.Errorf("%+v", r)
		}
		for _, lock := range []string{"l1", "l2", "l3"} {
			if locked(t, filepath.Join(dir, lock)) {
				t.Errorf("%s lives", lock)
			}
		}
		s = speak(t, t.Context(), l, shell(t, "exec <&-; echo closed; read line || exit 5"))
		if got := s.line(); got != "closed" {
			t.Fatal(got)
		}
		if r := s.end(); r.ExitCode != 5 {
			t.Errorf("%+v", r)
		}
		s = speak(t, t.Context(), l, shell(t, "echo a; exec yes"))
		s.line()
		if err := s.outFile.Close(); err != nil { // as head does
			t.Fatal(err)
		}
		if r := s.end(); r.Signal != syscall.SIGPIPE || r.ExitCode != 128+int(syscall.SIGPIPE) {
			t.Errorf("nobody reads: %+v", r)
		}
		const much = 3 << 20
		s = speak(t, t.Context(), l, shell(t, "head -c 3145728 /dev/zero"))
		text, err := io.ReadAll(s.out)
		if r := s.end(); err != nil || len(text) != much || len(r.Stdout.Data) != 1<<20 || !r.Stdout.Cut {
			t.Errorf("%d bytes, %d kept, %v", len(text), len(r.Stdout.Data), err)
		}
		stuck, w, err := os.Pipe() // nobody takes it, and its time ends
		if err != nil {
			t.Fatal(err)
		}
		defer stuck.Close()
		defer w.Close()
		c = shell(t, "exec yes")
		c.Live, c.Timeout = &Live{Stdout: w}, time.Second
		if r := run(t, l, c); !r.TimedOut || r.Signal != syscall.SIGKILL {
			t.Errorf("its time: %+v", r)
		}
	})
}

// A signal that rlp gets is the program's, who decides; one that ends it is told.
func TestSignalsPassThrough(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		l := newLane(t, name)
		for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT} {
			s := speak(t, t.Context(), l, shell(t, "exec sh -c 'echo begun; exec sleep 1000'"))
			s.line()
			s.signals <- sig
			if r := s.end(); r.Signal != sig || r.ExitCode != 128+int(sig) {
				t.Errorf("%v: %+v", sig, r)
			}
			s = speak(t, t.Context(), l, shell(t, `trap 'echo got; exit 7' INT TERM HUP QUIT; echo begun
				while :; do sleep 0.05; done`))
			s.line()
			s.signals <- sig
			if got := s.line(); got != "got" {
				t.Errorf("%v: %q", sig, got)
			}
			if r := s.end(); r.Signal != 0 || r.ExitCode != 7 {
				t.Errorf("%v: %+v", sig, r)
			}
		}
		// what a terminal would send goes to all in the group, a supervisor's to one
		for sig, want := range map[syscall.Signal]string{unix.SIGHUP: "child", unix.SIGTERM: "parent"} {
			s := speak(t, t.Context(), l, shell(t, `trap 'echo parent; exit' TERM; trap : HUP
				sh -c 'trap "echo child; exit" HUP TERM; echo begun; while :; do sleep 0.05; done' & wait; wait`))
			s.line()
			s.signals <- sig
			if got := s.line(); got != want {
				t.Errorf("%v: %q", sig, got)
			}
		}
		r := run(t, l, shell(t, "kill -TERM $$"))
		if r.Signal != unix.SIGTERM || r.ExitCode != 128+int(unix.SIGTERM) {
			t.Errorf("%+v", r)
		}
		if r = run(t, l, shell(t, "exit 143")); r.Signal != 0 || r.ExitCode != 143 { // control
			t.Errorf("%+v", r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s := speak(t, ctx, l, shell(t, `trap "" INT TERM HUP QUIT; echo begun; sleep 1000`))
		s.line()
		cancel()
		if <-s.ended; !errors.Is(s.err, context.Canceled) {
			t.Errorf("%+v %v", s.result, s.err)
		}
	})
}

func TestTheLaneNativeDropsNoStreamsSilently(t *testing.T) {
	c := shell(t, "exit 0")
	c.Live = &Live{}
	var u *UnsupportedError
	if _, err := newNative(t).Run(t.Context(), c); !errors.As(err, &u) {
		t.Errorf("native: %v", err)
	}
}
