package lane

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// A screen is a terminal of a test's own, and whoever sits at it: what is shown on
// it, and what is typed.
type screen struct {
	t      *testing.T
	person *os.File
	side   *os.File // of the programs
	shown  chan []byte
	all    []byte // shown, and not looked at yet
}

func newScreen(t *testing.T, rows, cols uint16) *screen {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	side, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, person: os.NewFile(uintptr(fd), "ptmx"), side: side, shown: make(chan []byte)}
	s.resize(rows, cols)
	go func() {
		defer close(s.shown)
		for {
			buf := make([]byte, 4096)
			n, err := s.person.Read(buf)
			if err != nil {
				return
			}
			s.shown <- buf[:n]
		}
	}()
	t.Cleanup(func() {
		_ = s.person.Close()
		for range s.shown {
			continue
		}
		_ = side.Close()
	})
	return s
}

func (s *screen) resize(rows, cols uint16) {
	s.t.Helper()
	if err := unix.IoctlSetWinsize(int(s.side.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) types(text string) {
	s.t.Helper()
	if _, err := s.person.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// sees waits until text is shown, and is what was shown until then.
func (s *screen) sees(text string) string {
	s.t.Helper()
	late := time.After(20 * time.Second)
	for {
		if i := bytes.Index(s.all, []byte(text)); i >= 0 {
			before := string(s.all[:i])
			s.all = s.all[i+len(text):]
			return before
		}
		select {
		case more, ok := <-s.shown:
			if !ok {
				s.t.Fatalf("%q is not shown, but %q", text, s.all)
			}
			s.all = append(s.all, more...)
		case <-late:
			s.t.Fatalf("%q is not shown, but %q", text, s.all)
		}
	}
}

func (s *screen) modes() unix.Termios {
	s.t.Helper()
	modes, err := unix.IoctlGetTermios(int(s.side.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *modes
}

// group is the one that is in the foreground.
func (s *screen) group() (is int) {
	s.t.Helper()
	withFile(s.person, func(fd int) {
		var err error
		if is, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil {
			s.t.Fatal(err)
		}
	})
	return is
}

// sit starts a program at the screen.
func (s *screen) sit(ctx context.Context, l Lane, c *Command) (ended func() (*Result, error)) {
	c.Live, c.Timeout = &Live{Stdin: s.side, Stdout: s.side, Stderr: s.side}, 0
	c.Env = append(c.Env, "TERM=xterm", "PS1=> ")
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var r *Result
	var err error
	go func() {
		defer close(done)
		r, err = l.Run(ctx, c)
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
	return func() (*Result, error) {
		s.t.Helper()
		for late := time.After(20 * time.Second); ; {
			select {
			case <-done:
				return r, err
			case more := <-s.shown:
				s.all = append(s.all, more...)
			case <-late:
				s.t.Fatalf("it has not ended; shown is %q", s.all)
			}
		}
	}
}

// A program at a terminal has one of its own, of the same size, which it can open by
// its name; it knows nothing of rlp's, which is as it was in the end.
func TestAProgramHasATerminalOfItsOwn(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		s := newScreen(t, 33, 77)
		before := s.modes()
		l := newLane(t, name)
		ended := s.sit(t.Context(), l, shell(t, `tty; stty size; ls -1 /dev/pts; stat -L -c %t,%T /proc/self/fd/2
			echo by name >/dev/tty; echo by number >/dev/pts/0; echo by link >/dev/stderr
			trap 'stty size; exit 7' WINCH; echo begun; while :; do sleep 0.05; done`))
		if got := s.sees("begun\r\n"); got != "/dev/pts/0\r\n33 77\r\n0\r\nptmx\r\n88,0\r\n"+
			"by name\r\nby number\r\nby link\r\n" {
			t.Errorf("%q", got)
		}
		if is := s.modes(); is.Lflag&(unix.ECHO|unix.ICANON|unix.ISIG) != 0 {
			t.Error("the terminal is not in raw mode")
		}
		s.resize(44, 99)
		if err := unix.Kill(unix.Getpid(), unix.SIGWINCH); err != nil { // as the terminal of this process would
			t.Fatal(err)
		}
		s.sees("44 99\r\n")
		if r, err := ended(); err != nil || r.ExitCode != 7 || !strings.Contains(string(r.Stdout.Data), "44 99") {
			t.Errorf("%+v %v", r, err)
		}
		if s.modes() != before {
			t.Error("the terminal is not as it was")
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended = s.sit(ctx, l, shell(t, "echo begun; sleep 1000"))
		s.sees("begun\r\n")
		cancel()
		if _, err := ended(); err == nil || s.modes() != before {
			t.Errorf("after the end of its run: %v", err)
		}
		ended = s.sit(t.Context(), l, shell(t, "echo begun; exec sleep 1000"))
		s.sees("begun\r\n")
		s.types("\x03")
		if r, err := ended(); err != nil || r.Signal != syscall.SIGINT {
			t.Errorf("interrupted: %+v %v", r, err)
		}
		// What makes terminals for itself can do so, and so many only.
		if _, err := exec.LookPath("python3"); err == nil {
			c := shell(t, "exec /usr/bin/python3 -c 'import pty\nn=0\ntry:\n  while 1: pty.openpty(); n+=1\nexcept OSError: print(n)'")
			c.Live, c.Timeout = &Live{}, 0
			if r := run(t, l, c); strings.TrimSpace(string(r.Stdout.Data)) != "64" {
				t.Errorf("terminals: %s %s", r.Stdout.Data, r.Stderr.Data)
			}
		}
	})
}

// Jobs are stopped, continued and interrupted inside, by the keys that do so.
func TestJobsAtATerminal(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		s := newScreen(t, 24, 80)
		c := shell(t, "exec bash --norc --noprofile -i")
		ended := s.sit(t.Context(), newLane(t, name), c)
		s.sees("> ")
		// a key that is typed while bash changes the modes of the terminal may get lost
		s.types(`sh -c 'trap "echo \$((40+3))on; exec sleep 1000" CONT; echo $((40+2))go; while :; do :; done'` + "\r")
		s.sees("42go\r\n")
		s.types("\x1a")
		s.sees("Stopped")
		s.sees("> ")
		s.types("fg\r")
		s.sees("43on\r\n")
		s.types("\x03")
		s.sees("> ")
		s.types("echo ended $?\r")
		s.sees("ended 130")
		s.types("exit 9\r")
		if r, err := ended(); err != nil || r.ExitCode != 9 {
			t.Errorf("%+v %v", r, err)
		}
	})
}

// An editor draws on all of the screen, and writes what was typed.
func TestAnEditorAtATerminal(t *testing.T) {
	if _, err := os.Stat("/usr/bin/vi"); err != nil {
		t.Log("smaller: vi is not installed")
		return
	}
	eachSandbox(t, func(t *testing.T, name string) {
		s, dir := newScreen(t, 33, 77), shared(t)
		before := s.modes()
		c := shell(t, "exec vi -u NONE -n "+dir+"/text")
		c.Folders = []Folder{{Path: dir, Access: ReadWrite}}
		ended := s.sit(t.Context(), newLane(t, name), c)
		s.sees("[New")
		s.types(":set lines?\r")
		s.sees("lines=33")
		s.types("ione\x7f\x7f\x7ftwo\x1b:wq\r")
		if r, err := ended(); err != nil || r.ExitCode != 0 {
			t.Errorf("%+v %v", r, err)
		}
		if text, err := os.ReadFile(dir + "/text"); err != nil || string(text) != "two\n" {
			t.Errorf("%q %v", text, err)
		}
		if s.modes() != before {
			t.Error("the terminal is not as it was")
		}
	})
}

// live is rlp at a terminal: it runs a script in the lane ns.
func live(script string) int {
	self, err := os.Executable()
	if err != nil {
		return 125
	}
	dir, err := os.MkdirTemp("/var/tmp", "lane-live")
	if err != nil {
		return 125
	}
	defer os.RemoveAll(dir)
	l, err := Open(context.Background(), "ns", Config{
		Work: dir + "/agent/run", ID: "live-" + strconv.Itoa(os.Getpid()), Self: []string{self, "rlp", sandbox.ConfineName},
	})
	if err != nil {
		return 125
	}
	defer l.Close()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		return 125
	}
	r, err := l.Run(context.Background(), &Command{
		Program: sh, Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, MaxOutput: 1 << 20,
		Live: &Live{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals},
	})
	if err != nil {
		return 125
	}
	return r.ExitCode
}

// To the shell that started it rlp is a job as others are: it can be stopped, go to
// the background and come back, and the terminal is the shell's meanwhile.
func TestRlpIsAJob(t *testing.T) {
	s := newScreen(t, 24, 80)
	bash := exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	bash.Stdin, bash.Stdout, bash.Stderr = s.side, s.side, s.side
	bash.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	bash.Env = []string{"PATH=/usr/bin:/bin", "PS1=> ", "TERM=xterm", "SELF=" + self(t)}
	if err := bash.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = bash.Process.Kill()
		_ = bash.Wait()
	})
	cooked := func(when string) {
		t.Helper()
		if s.modes().Lflag&unix.ICANON == 0 {
			t.Errorf("%s: the terminal is in raw mode", when)
		}
	}
	s.sees("> ")
	s.types("$SELF live 'echo $((40+2))go; exec sleep 1000'\r")
	s.sees("42go\r\n")
	if s.modes().Lflag&unix.ICANON != 0 {
		t.Error("control: the terminal is not in raw mode")
	}
	group := s.group()
	for _, stop := range []unix.Signal{unix.SIGTSTP, unix.SIGSTOP} {
		if err := unix.Kill(group, stop); err != nil {
			t.Fatal(err)
		}
		s.sees("Stopped")
		s.sees("> ")
		s.types("echo $((40+3))on\r")
		s.sees("43on\r\n")
		if stop == unix.SIGTSTP {
			cooked("stopped")
		}
		s.types("fg\r")
		s.sees("exec sleep 1000'\r\n")
		for s.modes().Lflag&unix.ICANON != 0 { // it takes the terminal when it goes on, which undoes what stops it before
			pause()
		}
	}
	s.types("\x03")
	s.sees("> ")
	s.types("echo ended $?\r")
	s.sees("ended 130\r\n")
	cooked("ended")
	s.sees("> ")
	s.types("$SELF live 'echo $((40+4))bg; read x; echo got $x; read x' &\r")
	s.sees("44bg\r")
	cooked("in the background")
	s.types("echo $((40+5))fg\r")
	s.sees("45fg\r\n")
	s.types("fg\r")
	for s.modes().Lflag&unix.ICANON != 0 {
		pause()
	}
	s.types("word\r")
	s.sees("got word\r\n")
	if err := unix.Kill(s.group(), unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.sees("> ")
	cooked("asked to end")
	s.types("echo ended $?\r")
	s.sees("ended 143\r\n")
}
