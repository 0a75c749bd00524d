package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a test's client exits with when nobody did its work.
const (
	alone = 101 // it was declined, or found nobody
	lost  = 102
	rude  = 103
)

// clientMain is a client as a launch is one. RESIDENT_AS says what it does to
// itself first.
func clientMain(path string) int {
	if err := become(os.Getenv("RESIDENT_AS")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return rude
	}
	c, err := Dial(path)
	if os.Getenv("RESIDENT_AS") == "rude" {
		c, err = dialBlindly(path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "alone:", err)
		return alone
	}
	// who serves has ended since
	if err := c.Send(Request{Kind: Launch, Args: os.Args[1:], Env: os.Environ()}, 0, 1, 2); err != nil {
		fmt.Fprintln(os.Stderr, "alone:", err)
		return alone
	}
	a := c.Wait()
	switch {
	case a.Lost:
		return lost
	case !a.Taken:
		fmt.Fprintln(os.Stderr, "alone:", a.Why)
		return alone
	}
	return a.Status
}

// dialBlindly connects with whoever serves, and shows nothing.
func dialBlindly(path string) (*Client, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_SEQPACKET, 0)
	if err != nil {
		return nil, err
	}
	c := &Client{fd: fd}
	return c, c.connect(path)
}

// become makes the client unlike the one that serves.
func become(what string) error {
	switch what {
	case "umask":
		unix.Umask(0o077)
	case "nice":
		return unix.Setpriority(unix.PRIO_PROCESS, 0, 5)
	case "limited":
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
	}
	return nil
}

// client starts one with args.
func client(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command("/proc/self/exe", args...)
	c.Env = append(os.Environ(), "RESIDENT_CLIENT="+filepath.Join(dir, SocketName), "MINE=client's")
	return c
}

// serving is a process that serves: the tests' own.
type serving struct {
	dir  string
	stop func()
	done chan error
	wait func(t *testing.T) error
}

func serve(t *testing.T, dir string, handle func(ctx context.Context, call *Call) Outcome,
	change ...func(*Options),
) *serving {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ready := make(chan struct{})
	o := Options{Dir: dir, Idle: time.Hour, Most: 8, Handle: handle, Ready: func() { close(ready) }, Over: func() {}}
	for _, f := range change {
		f(&o)
	}
	s := &serving{dir: dir, stop: stop, done: make(chan error, 1)}
	go func() { s.done <- Serve(ctx, o) }()
	select {
	case <-ready:
	case err := <-s.done:
		t.Fatal(err)
	}
	s.wait = func(t *testing.T) error {
		t.Helper()
		select {
		case err := <-s.done:
			s.done <- err
			return err
		case <-time.After(time.Minute):
			t.Fatal("it serves on")
			return nil
		}
	}
	t.Cleanup(func() {
		stop()
		if err := s.wait(t); err != nil {
			t.Error(err)
		}
	})
	return s
}

// says is a launch that says what it was given.
func says(_ context.Context, c *Call) Outcome {
	if err := c.Begin(); err != nil {
		return Outcome{Declined: "gone"}
	}
	var file []byte
	var err error
	moved := c.Here(func(dir string) {
		file, err = os.ReadFile("here")
		fmt.Fprint(c.Stderr, dir)
	})
	in, readErr := io.ReadAll(c.Stdin)
	mine := ""
	for _, kv := range c.Env {
		if v, ok := strings.CutPrefix(kv, "MINE="); ok {
			mine = v
		}
	}
	fmt.Fprintf(c.Stdout, "%s|%s|%s|%s|%v", strings.Join(c.Args, " "), mine, in, file, errors.Join(err, readErr, moved))
	return Outcome{Status: 42}
}

// code runs a client to its end.
func code(t *testing.T, c *exec.Cmd) (status int, stdout, stderr string) {
	t.Helper()
	var out, problems strings.Builder
	c.Stdout, c.Stderr = &out, &problems
	err := c.Run()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), problems.String()
}

// What is done for a client is done with its own words, streams and folder.
func TestDoneAsTheClientWould(t *testing.T) {
	s := serve(t, t.TempDir(), says)
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "here"), []byte("in the folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c := client(t, s.dir, "launch", "", "x y")
		c.Dir, c.Stdin = work, strings.NewReader("typed")
		status, out, where := code(t, c)
		if want := "launch  x y|client's|typed|in the folder|<nil>"; status != 42 || out != want || where != work {
			t.Errorf("%d %q in %q, want 42 %q in %q", status, out, where, want, work)
		}
	}
	if _, err := os.ReadFile("here"); err == nil {
		t.Error("the tests' own folder is the client's")
	}
	state, err := Ask(filepath.Join(s.dir, SocketName), Status)
	if err != nil || state.Done != 3 || state.Running != 0 || state.PID != os.Getpid() {
		t.Errorf("%+v, %v", state, err)
	}
}

// Nobody gets done by another process what they could not do as well themselves,
// or what would come out another way.
func TestUnlikeClientsAreDeclined(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, says)
	control, _, _ := code(t, client(t, dir))
	if control != 42 {
		t.Fatalf("control: %d", control)
	}
	for what, want := range map[string]string{
		"umask": "other rights", "nice": "another priority", "limited": "other limits",
		"rude": "it may not look into this process",
	} {
		c := client(t, dir)
		c.Env = append(c.Env, "RESIDENT_AS="+what)
		if status, _, why := code(t, c); status != alone || !strings.Contains(why, want) {
			t.Errorf("%s: %d %q, want %q", what, status, why, want)
		}
	}
	for name, flag := range map[string]uintptr{
		"mnt": unix.CLONE_NEWNS, "uts": unix.CLONE_NEWUTS, "ipc": unix.CLONE_NEWIPC, "net": unix.CLONE_NEWNET,
		"cgroup": unix.CLONE_NEWCGROUP,
	} {
		c := client(t, dir)
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flag}
		if os.Geteuid() != 0 { // makes all of them in one
			c.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
			name = "" // the user namespace comes first
		}
		if status, _, why := code(t, c); status != alone || !strings.Contains(why, name) || status == 42 {
			t.Errorf("another %s namespace: %d %q", name, status, why)
		}
	}
	if os.Geteuid() == 0 {
		c := client(t, dir)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: []uint32{12345}}}
		if status, _, why := code(t, c); status != alone || !strings.Contains(why, "other rights") {
			t.Errorf("other groups: %d %q", status, why)
		}
	}
	copied := filepath.Join(t.TempDir(), "copy")
	own, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(copied, own, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, dir)
	c.Path = copied
	if status, _, why := code(t, c); status != 42 {
		t.Errorf("a copy of the same program: %d %q", status, why)
	}
	own[len(own)/2] ^= 1 // somewhere in the middle of what it links
	other := append(own[:len(own):len(own)], 0)
	other[len(other)/2] ^= 1
	if err := os.WriteFile(copied, other, 0o700); err != nil {
		t.Fatal(err)
	}
	c = client(t, dir)
	c.Path = copied
	if status, _, why := code(t, c); status == 42 {
		t.Errorf("another program: %d %q", status, why)
	}
	if state, err := Ask(filepath.Join(s.dir, SocketName), Status); err != nil || state.Declined["other limits"] != 1 {
		t.Errorf("%+v, %v", state, err)
	}
}

// Another user is refused by both ends, be the folder open to all.
func TestOtherUsersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root can be somebody else
	}
	dir := filepath.Join("/tmp", "rlp-resident-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	serve(t, dir, says)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, as := range []string{"", "rude"} {
		c := client(t, dir)
		c.Path, c.Dir = self, "/"
		c.Env = append(c.Env, "RESIDENT_AS="+as)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := c.CombinedOutput()
		if err == nil || c.ProcessState != nil && c.ProcessState.ExitCode() == 42 {
			t.Errorf("behind a closed folder: %v %s", err, out)
		}
	}
	for _, err := range []error{os.Chmod(dir, 0o755), os.Chmod(filepath.Join(dir, SocketName), 0o666)} { //nolint:gosec // what must not help
		if err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "program")
	text, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(program, text, 0o755) //nolint:gosec // it is started by another user
	}
	if err != nil {
		t.Fatal(err)
	}
	for as, want := range map[string]string{"": "the socket is served by user 0", "rude": "another user"} {
		c := client(t, dir)
		c.Path, c.Dir = program, "/"
		c.Env = append(c.Env, "RESIDENT_AS="+as)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if status, _, why := code(t, c); status != alone || !strings.Contains(why, want) {
			t.Errorf("%q: %d %q, want %q", as, status, why, want)
		}
	}
}
