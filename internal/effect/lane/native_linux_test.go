package lane

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// The tests' own program is what they run where a shell would not do.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == sandbox.ConfineName {
		os.Exit(sandbox.Confined())
	}
	if len(os.Args) == 3 && strings.HasPrefix(os.Args[1], "reach-") {
		fmt.Println(reach(os.Args[1], os.Args[2]))
		syscall.Exit(0) // in os.Exit the race detector waits a second
	}
	if len(os.Args) == 3 && os.Args[1] == "live" {
		os.Exit(live(os.Args[2]))
	}
	if len(os.Args) == 3 && os.Args[1] == "leave-groups" {
		fmt.Println(leaveGroups(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// reach tries to get at something outside and says what came of it.
func reach(what, at string) string {
	var err error
	if own, is := strings.CutPrefix(what, "reach-own-"); is {
		return innermost(reachOwn(own, at))
	}
	switch kind, _ := strings.CutPrefix(what, "reach-"); kind {
	case "tcp", "udp", "unix":
		var c net.Conn
		if c, err = net.Dial(kind, at); err == nil {
			_, err = c.Write([]byte("x"))
		}
	case "packet":
		_, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	case "netlink":
		_, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)
	case "uring":
		_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 0, 0, 0)
		if errno != unix.EINVAL && errno != unix.EFAULT { // it looked at the arguments
			err = errno
		}
	case "limit", "priority", "affinity", "scheduler", "parameter", "attributes", "io":
		pid, _ := strconv.Atoi(at)
		err = orderAbout(kind, pid)
	case "bounded":
		return bounded(at)
	case "within":
		return within(at)
	case "sandbox":
		return inRoom(at)
	case "network":
		return inNetwork(at)
	case "kept":
		return raced(at)
	case "plants":
		return plants(at)
	case "deep":
		return deep(at)
	case "signalled":
		return signalled(at)
	case "signal":
		pid, _ := strconv.Atoi(at)
		err = unix.Kill(pid, 0)
	case "memory":
		var f *os.File
		if f, err = os.OpenFile("/proc/"+at+"/mem", os.O_RDWR, 0); err == nil {
			err = f.Close()
		}
	case "pair":
		_, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	case "datagram": // one of a pair can be connected to somebody else's
		var pair [2]int
		if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0); err == nil {
			err = unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: at})
		}
		if err == unix.EISCONN { // so it is, by connecting it again
			if err = unix.Connect(pair[0], &unix.SockaddrUnix{Name: at}); err == nil {
				_, err = unix.Write(pair[0], []byte("x"))
			}
		}
	}
	if err != nil {
		return "refused: " + err.Error()
	}
	return "reached"
}

func newNative(t testing.TB, change ...func(*Config)) *native {
	t.Helper()
	return newLane(t, "native", change...).(*native)
}

// file is a program of the machine by its canonical path.
func file(t testing.TB, path string) string {
	t.Helper()
	f, err := Resolve(path)
	if err != nil {
		t.Fatal(err)
	}
	return f.File
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return file(t, path)
}

func shell(t testing.TB, script string) *Command {
	return &Command{
		Program: file(t, "/bin/sh"), Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
		Timeout: time.Minute, MaxOutput: 1 << 20,
	}
}

func mustRun(t testing.TB, n *native, c *Command) *Result {
	t.Helper()
	return run(t, n, c)
}

//rlp:holds R84 K40 K41
func TestAProgramGetsWhatItIsGiven(t *testing.T) {
	t.Setenv("OPERATORS", "own")
	n := newNative(t)
	c := shell(t, `printf '%s|' "$0" "$@"; env; pwd; cat; echo err >&2; exit 7`)
	c.Argv = append(c.Argv, "zero", "a b", "", "$HOME;*")
	c.Env = append(c.Env, "ONE=1")
	c.Stdin = []byte("stdin")
	r := mustRun(t, n, c)
	out := string(r.Stdout.Data)
	if r.ExitCode != 7 || r.TimedOut || string(r.Stderr.Data) != "err\n" ||
		!strings.HasPrefix(out, "zero|a b||$HOME;*|") ||
		!strings.HasSuffix(out, n.cfg.Work+"\nstdin") || !strings.Contains(out, "ONE=1\n") ||
		strings.Contains(out, "OPERATORS") {
		t.Errorf("%+v\n%s\n%s", r, out, r.Stderr.Data)
	}
	if r := mustRun(t, n, shell(t, "kill -TERM $$")); r.ExitCode != 128+15 || r.TimedOut {
		t.Errorf("a signal: %+v", r)
	}
	if r := mustRun(t, n, shell(t, "read x; echo got:$x; tty")); string(r.Stdout.Data) != "got:\nnot a tty\n" {
		t.Errorf("no stdin: %q", r.Stdout.Data)
	}
}

func TestInheritedDescriptorsStay(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(secret, unix.O_RDWR, 0) // as a shell's 3<>file leaves it
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	list := "ls -l /proc/self/fd/"
	out, err := exec.Command("/bin/sh", "-c", list).Output()
	if err != nil || !strings.Contains(string(out), secret) {
		t.Fatalf("control: %v\n%s", err, out)
	}
	r := mustRun(t, newNative(t), shell(t, "for f in /proc/self/fd/*; do echo ${f##*/}; done; "+list))
	if strings.Contains(string(r.Stdout.Data), secret) || !strings.HasPrefix(string(r.Stdout.Data), "0\n1\n2\n3\n") ||
		strings.Contains(string(r.Stdout.Data), "\n5\n") {
		t.Errorf("%s", r.Stdout.Data)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil { // again, as on old kernels
		t.Fatal(err)
	}
	if err := keepListed(); err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %d, %v", flags, err)
	}
}

// The network, other processes and privileges are taken from programs. The
// control is the same program without the lane.
func TestWhatProgramsCannotReach(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	socket := filepath.Join(t.TempDir(), "s")
	local, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	letters, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket + "d", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer letters.Close()
	me := strconv.Itoa(os.Getpid())
	n := newNative(t)
	for _, c := range []struct {
		what, at string
		free     bool // needs no rights in the control
	}{
		{"tcp", tcp.Addr().String(), true},
		{"udp", udp.LocalAddr().String(), true},
		{"unix", socket, true},
		{"datagram", socket + "d", true},
		{"netlink", "", true},
		{"packet", "", os.Getuid() == 0},
		{"uring", "", false}, // hosts turn it off
		{"signal", me, true},
		{"memory", me, false}, // hosts forbid it
	} {
		args := []string{"reach-" + c.what, c.at}
		out, err := exec.Command(self(t), args...).Output()
		if err != nil || c.free && string(out) != "reached\n" {
			t.Errorf("control: %s: %v, %s", c.what, err, out)
		}
		r := mustRun(t, n, &Command{
			Program: self(t), Argv: append([]string{"lane.test"}, args...), Timeout: time.Minute,
			MaxOutput: 1 << 10,
		})
		if !strings.HasPrefix(string(r.Stdout.Data), "refused: ") {
			t.Errorf("%s: %s%s", c.what, r.Stdout.Data, r.Stderr.Data)
		}
	}
	r := mustRun(t, n, &Command{
		Program: self(t), Argv: []string{"lane.test", "reach-pair", ""},
		Timeout: time.Minute, MaxOutput: 1 << 10,
	})
	if string(r.Stdout.Data) != "reached\n" {
		t.Errorf("a pair of sockets leads nowhere, and is refused: %s", r.Stdout.Data)
	}
}

//rlp:holds K45
func TestProgramsHaveNoPrivileges(t *testing.T) {
	// the bound of memory comes a moment after the program has begun
	script := `until [ "$(ulimit -d)" != unlimited ]; do :; done; cat /proc/self/status; umask; ulimit -c; ulimit -d`
	r := mustRun(t, newNative(t, func(c *Config) { c.noGroup = true }), shell(t, script))
	for _, line := range []string{
		"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "CapInh:\t0000000000000000", "NoNewPrivs:\t1",
		"Seccomp:\t2",
		"0077\n0\n" + strconv.FormatInt(MaxData>>10, 10),
	} {
		if !strings.Contains(string(r.Stdout.Data), line+"\n") {
			t.Errorf("%q is missing:\n%s", line, r.Stdout.Data)
		}
	}
	// rlp itself has kept what it had
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || !strings.Contains(string(status), "NoNewPrivs:\t0") || !strings.Contains(string(status),
		"Seccomp:\t0") {
		t.Errorf("%v\n%s", err, status)
	}
}

// No memory of a program is dumped: the limit is the one that stops dumps to files
// and those that are piped, and a program does not set it to 0, which stops only
// the former. It hears that it did.
//
//rlp:holds K45
func TestProgramsDumpNoMemory(t *testing.T) {
	const script = `ulimit -c 0 && grep "Max core" /proc/self/limits; cat /proc/self/coredump_filter; sh -c "ulimit -c unlimited 2>/dev/null; kill -ABRT \$\$"; ls | grep core`
	for _, name := range []string{"native", "ns", "bwrap"} {
		r := run(t, newLane(t, name), shell(t, script))
		if want := limitOfCores(1) + "00000000\n"; string(r.Stdout.Data) != want || strings.Contains(string(r.Stderr.Data),
			"core dumped") {
			t.Errorf("%s: %s%s", name, r.Stdout.Data, r.Stderr.Data)
		}
	}
	if out, err := exec.Command("/bin/sh", "-c", script).Output(); !strings.HasPrefix(string(out), limitOfCores(0)) {
		t.Errorf("control: %v, %s", err, out)
	}
}

func limitOfCores(most int) string {
	return fmt.Sprintf("Max core file size        %-20d %-20d bytes     \n", most, most)
}
