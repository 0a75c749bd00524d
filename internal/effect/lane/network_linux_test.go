package lane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/egress"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
	"runloop.dev/rlp/internal/effect/netns"
	"runloop.dev/rlp/internal/effect/proxy"
)

// webAlone is a policy that lets http go to api.test.
type webAlone struct{}

func (webAlone) Knows(name string) bool { return name == "api.test" }
func (webAlone) Unknown(string, string) {}

func (webAlone) Ways(hostPort string) proxy.Ways {
	if hostPort == "api.test:80" || hostPort == "127.0.0.1:7070" {
		return proxy.HTTP
	}
	return 0
}

func (w webAlone) Decide(_ context.Context, t proxy.Target) (proxy.Grant, error) {
	if w.Ways(t.Host)&t.Way == 0 {
		return proxy.Grant{}, errors.New("not granted")
	}
	return proxy.Grant{Named: true}, nil
}

func (webAlone) Refuse(proxy.Target, proxy.Refusal, string) {}
func (webAlone) Done(proxy.Target, proxy.Grant, proxy.End)  {}

// towards is a network under that policy, whose every way out leads to server.
func towards(server string) *OwnNetwork {
	var d net.Dialer
	out := egress.New(egress.Config{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return d.DialContext(ctx, network, server)
		},
	})
	return &OwnNetwork{Ports: []uint16{7070}, Serve: func(s *netns.Sockets) (func(), error) {
		p, err := proxy.Serve(s, proxy.Config{Policy: webAlone{}, Outside: out, Now: time.Now})
		if err != nil {
			return nil, err
		}
		return func() { p.Close(time.Second) }, nil
	}}
}

func hello(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "hello ", r.Host)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// reaching says what curl reaches of each place.
const reaching = `for url in http://api.test/ http://127.0.0.1:7070/ http://other.test/ http://93.184.215.14/ http://169.254.169.254/; do
	curl -sS --max-time 20 $url 2>/dev/null || printf refused; echo; done`

const reached = "hello api.test\nhello 127.0.0.1:7070\nrefused\nrefused\nrefused\n"

// What a program can do with a network of its own is to reach what is served: its
// sockets are of TCP and UDP, it has no capability, changes no route or rule, and
// connects to no socket of Unix, whatever folder it lies in. Without one it has none.
func TestANetworkOfItsOwn(t *testing.T) {
	server := hello(t)
	dir := shared(t)
	l, err := net.Listen("unix", dir+"/docker.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	eachSandbox(t, func(t *testing.T, name string) {
		l := newLane(t, name, func(c *Config) { c.Folders = []Folder{{Path: dir, Access: ReadWrite}} })
		c := shell(t, reaching+`; grep CapEff /proc/self/status; cat /etc/resolv.conf`)
		c.Network = towards(server)
		if got := string(run(t, l, c).Stdout.Data); got != reached+"CapEff:\t0000000000000000\n"+
			"nameserver 198.18.0.2\noptions timeout:5 attempts:1\n" {
			t.Errorf("%s", got)
		}
		c = shell(t, reaching)
		if got := string(run(t, l, c).Stdout.Data); got != strings.Repeat("refused\n", 5) {
			t.Errorf("without a network: %s", got)
		}
		for what, want := range map[string]string{
			"unix=" + dir + "/docker.sock": "permission denied", "packet=": "permission denied",
			"tcp=" + server: "connection refused", "udp=127.0.0.1:443": "connection refused", "raw=": "permission denied",
			"mptcp=": "permission denied", "vsock=": "permission denied", "netlink=": "<nil>",
			"route=":  "operation not permitted",
			"remake=": "operation not permitted", "namespace=": "operation not permitted",
		} {
			kind, at, _ := strings.Cut(what, "=")
			c := shell(t, "")
			c.Program, c.Argv, c.Network = self(t), []string{"own", "reach-own-" + kind, at}, towards(server)
			c.Folders = []Folder{{Path: filepath.Dir(self(t)), Access: ReadOnly}, {Path: dir, Access: ReadWrite}}
			if r := run(t, l, c); strings.TrimSpace(string(r.Stdout.Data)) != want {
				t.Errorf("%s: %q %q, want %q", what, r.Stdout.Data, r.Stderr.Data, want)
			}
		}
	})
	for kind, at := range map[string]string{"unix": dir + "/docker.sock", "tcp": server, "packet": "", "raw": ""} {
		if os.Geteuid() != 0 && (kind == "packet" || kind == "raw") {
			continue
		}
		if err := reachOwn(kind, at); err != nil {
			t.Errorf("control: without a lane, %s: %v", kind, err)
		}
	}
}

// reachOwn tries what a network of one's own leads nowhere.
func reachOwn(kind, at string) error {
	socket := func(domain, kind, proto int) error {
		fd, err := unix.Socket(domain, kind, proto)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}
	switch kind {
	case "unix", "tcp", "udp":
		c, err := net.Dial(kind, at)
		if err == nil {
			_, _ = c.Write([]byte("x"))
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			_, err = c.Read(make([]byte, 1))
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				return nil // there it is, and says nothing
			}
		}
		return err
	case "packet":
		return socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	case "raw":
		return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
	case "mptcp":
		return socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	case "vsock":
		return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	case "netlink":
		_, err := net.Interfaces()
		return err
	case "route":
		return setDown()
	case "remake":
		_, err := netns.Make(netns.Plan{})
		return err
	case "namespace":
		return unix.Unshare(unix.CLONE_NEWUSER | unix.CLONE_NEWNET)
	}
	return errors.New("nothing is called so")
}

// innermost is what the system says.
func innermost(err error) string {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return fmt.Sprint(err)
}

// setDown takes the loopback interface down.
func setDown() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// Lanes that have no network to give start nothing, and say which do.
func TestNoNetworkToGive(t *testing.T) {
	c := shell(t, "true")
	c.Network = towards(hello(t))
	l, err := Native(Config{Work: t.TempDir() + "/agent/run", ID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var u *UnsupportedError
	if _, err := l.Run(t.Context(), c); !errors.As(err, &u) || !strings.Contains(err.Error(), `[exec] lane = "ns"`) {
		t.Errorf("%v", err)
	}
	broken := errors.New("nobody serves")
	c.Network.Serve = func(s *netns.Sockets) (func(), error) { s.Close(); return nil, broken }
	if _, err := newLane(t, "ns").Run(t.Context(), c); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// An ordinary user has the same network.
func TestANetworkOfAnyUser(t *testing.T) {
	if os.Geteuid() != 0 { // every other test is of this
		return
	}
	server := hello(t)
	dir := shared(t)
	own := filepath.Join(dir, "program")
	text, err := os.ReadFile(self(t))
	if err := errors.Join(err, os.WriteFile(own, text, 0o600), os.Chmod(own, 0o755), os.Chmod(dir, 0o755),
		os.Mkdir(dir+"/w", 0o700), os.Chown(dir+"/w", 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t) })
	eachSandbox(t, func(t *testing.T, name string) {
		c := exec.Command(own, "reach-network", name+"="+dir+"/w="+server)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		c.Dir = "/"
		if out, err := c.CombinedOutput(); err != nil || string(out) != reached+"\n" {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// inNetwork is what such a user's program reaches.
func inNetwork(at string) string {
	words := strings.Split(at, "=")
	l, err := Open(context.Background(), words[0], Config{
		Work: words[1] + "/" + words[0] + "/run", ID: "any", Self: []string{"/proc/self/exe", "rlp", sandbox.ConfineName},
	})
	if err != nil {
		return err.Error()
	}
	sh, err := Resolve("/bin/sh")
	if err != nil {
		return err.Error()
	}
	r, err := l.Run(context.Background(), &Command{
		Program: sh.File, Timeout: time.Minute, MaxOutput: 1 << 10, Argv: []string{"sh", "-c", reaching},
		Network: towards(words[2]),
	})
	if err != nil {
		return err.Error()
	}
	return string(r.Stdout.Data)
}

// A lane that is to give a network is tried with one, and starts programs in the
// folder that it is told, where they see it.
func TestALaneIsTriedWithItsNetwork(t *testing.T) {
	dir := shared(t)
	server := hello(t)
	eachSandbox(t, func(t *testing.T, name string) {
		l := newLane(t, name, func(c *Config) {
			c.Network, c.Folders = true, []Folder{{Path: dir, Access: ReadWrite}}
		})
		if err := l.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := shell(t, `pwd; curl -sS http://api.test/`)
		c.Network, c.Folders, c.Cwd = towards(server), []Folder{{Path: dir, Access: ReadWrite}}, dir
		if r := run(t, l, c); string(r.Stdout.Data) != dir+"\nhello api.test" {
			t.Errorf("%s%s", r.Stdout.Data, r.Stderr.Data)
		}
		c.Folders, c.Cwd = nil, dir
		if _, err := l.Run(t.Context(), c); err == nil {
			t.Error("started in a folder that it does not see")
		}
	})
	for _, name := range []string{"native", "container"} {
		var u *UnsupportedError
		if _, err := Open(t.Context(), name, Config{Network: true}); !errors.As(err, &u) || u.Remedy == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
