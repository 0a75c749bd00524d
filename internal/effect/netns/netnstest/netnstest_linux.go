// Package netnstest starts programs in a network that [netns.Make] made, for
// tests of what is served there.
package netnstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/netns"
)

// The first arguments of the processes that a test's own program is again.
const (
	asUser = "netnstest-user"
	inside = "netnstest-inside"
)

// nobody is an ordinary user: no privilege, no home, no mapping of others.
const nobody = 65534

// Environment is what programs are given beside what a test adds.
var environment = [...]string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "LANG=C.UTF-8"}

// A Config says who starts a program, and in which network.
type Config struct {
	Plan netns.Plan
	User bool // an ordinary one, although the test is root
	Env  []string
}

// A Program is what was started, in a network that the test serves.
type Program struct {
	Sockets *netns.Sockets

	cmd *exec.Cmd
	out *bytes.Buffer
}

// Child is what a test's TestMain calls first, with the program's arguments: if
// it is a process of Start's, is is true, and it ends with the code.
func Child(args []string) (code int, is bool) {
	if len(args) < 5 || args[1] != asUser && args[1] != inside {
		return 0, false
	}
	var err error
	if args[1] == asUser {
		code, err = again(args)
	} else {
		err = become(args)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.NewFile(2, "stderr"), err)
		return 125, true
	}
	return code, true
}

// Start starts argv in a namespace of its own, which belongs to whom c says.
func Start(t testing.TB, c Config, argv ...string) *Program {
	t.Helper()
	dir := t.TempDir()
	own := self(t, dir)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "theirs")
	p := &Program{out: &bytes.Buffer{}}
	p.cmd = command(own, append([]string{inside, dir, planned(c.Plan)}, argv...), c.Env, p.out, theirs)
	if c.User && os.Geteuid() == 0 {
		p.cmd = command(own, append([]string{asUser, dir, planned(c.Plan)}, argv...), c.Env, p.out, theirs)
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	} else {
		p.cmd.SysProcAttr = namespaces()
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	if p.Sockets, err = netns.Receive(pair[0]); err != nil {
		_ = p.cmd.Wait()
		t.Fatalf("%v: %s", err, p.out)
	}
	return p
}

// Wait waits for the end of the program, and returns what it said.
func (p *Program) Wait() (string, error) {
	err := p.cmd.Wait()
	return p.out.String(), err
}

// self is a copy of the test's program that anybody may execute, and a file for
// the place of resolv.conf, in dir and above it.
func self(t testing.TB, dir string) string {
	text, err := os.ReadFile("/proc/self/exe")
	own := filepath.Join(dir, "own")
	resolv := "nameserver " + netns.Resolver4.String() + "\noptions timeout:5 attempts:1\n"
	err = errors.Join(err, os.WriteFile(own, text, 0o600), os.Chmod(own, 0o755),
		os.WriteFile(filepath.Join(dir, "resolv"), []byte(resolv), 0o600), os.Chmod(filepath.Join(dir, "resolv"), 0o644))
	for up := dir; up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		err = errors.Join(err, os.Chmod(up, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return own
}

func command(own string, args, env []string, out io.Writer, extra *os.File) *exec.Cmd {
	c := exec.Command(own, args...)
	c.Env = append(environment[:], env...)
	if race, is := syscall.Getenv("GORACE"); is { // how long the race detector keeps a program that has ended
		c.Env = append(c.Env, "GORACE="+race)
	}
	c.Stdout, c.Stderr, c.ExtraFiles = out, out, []*os.File{extra}
	c.Dir = "/"
	return c
}

// planned is a plan as an argument.
func planned(p netns.Plan) string {
	words := []string{strconv.FormatBool(p.Redirect)}
	for _, port := range p.Ports {
		words = append(words, strconv.Itoa(int(port)))
	}
	return strings.Join(words, ",")
}

func namespaces() *syscall.SysProcAttr {
	uid, gid := os.Geteuid(), os.Getegid()
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{
			unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP,
		},
		Pdeathsig: unix.SIGKILL,
	}
}

// again starts this program once more, in the namespaces of who it runs as.
func again(args []string) (int, error) {
	runtime.LockOSThread() // the child dies with this thread
	c := command("/proc/self/exe", append([]string{inside}, args[2:]...), syscall.Environ(), os.NewFile(1, "stdout"),
		os.NewFile(3, "socket"))
	c.SysProcAttr = namespaces()
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// become makes the network, hands it over and becomes the program.
func become(args []string) error {
	runtime.LockOSThread()
	plan := netns.Plan{Redirect: strings.HasPrefix(args[3], "true")}
	for _, word := range strings.Split(args[3], ",")[1:] {
		port, err := strconv.ParseUint(word, 10, 16)
		if err != nil {
			return err
		}
		plan.Ports = append(plan.Ports, uint16(port))
	}
	s, err := netns.Make(plan)
	if err != nil {
		return err
	}
	if err := s.Send(3); err != nil {
		return err
	}
	s.Close()
	unix.CloseOnExec(3)
	resolv, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount(filepath.Join(args[2], "resolv"), resolv, "", unix.MS_BIND, "")); err != nil {
		return err
	}
	path, err := exec.LookPath(args[4])
	if err != nil {
		return err
	}
	if err := powerless(); err != nil {
		return err
	}
	return unix.Exec(path, args[4:], syscall.Environ())
}

// powerless gives up every capability of this thread, for good.
func powerless() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return errors.Join(unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0),
		unix.Capset(&header, &none[0]), unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}
