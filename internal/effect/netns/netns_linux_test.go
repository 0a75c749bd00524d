package netns_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/netns"
	"runloop.dev/rlp/internal/effect/netns/netnstest"
)

func TestMain(m *testing.M) {
	if code, is := netnstest.Child(os.Args); is {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == "reach" {
		reach(os.Args[2:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// reach tries each of what is named, from inside, and prints a line for each.
func reach(what []string) {
	for _, w := range what {
		kind, at, _ := strings.Cut(w, "=")
		said, err := attempt(kind, at)
		if err != nil {
			said = "no: " + last(err)
		}
		fmt.Printf("%s %s\n", w, said)
	}
}

func last(err error) string {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}

func attempt(kind, at string) (string, error) {
	switch kind {
	case "tcp", "udp":
		c, err := net.DialTimeout(kind, at, 10*time.Second)
		if err != nil {
			return "", err
		}
		defer c.Close()
		if _, err := c.Write([]byte("hello\n")); err != nil {
			return "", err
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		b := make([]byte, 100)
		n, err := c.Read(b)
		return strings.TrimSpace(string(b[:n])), err
	case "listen": // a server of the program's own, on loopback
		l, err := net.Listen("tcp", at)
		if err != nil {
			return "", err
		}
		defer l.Close()
		go func() {
			if c, err := l.Accept(); err == nil {
				_, _ = c.Write([]byte("own"))
				_ = c.Close()
			}
		}()
		return attempt("tcp", l.Addr().String())
	case "raw":
		_, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
		return "opened", err
	case "packet":
		_, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		return "opened", err
	case "remake":
		_, err := netns.Make(netns.Plan{})
		return "made", err
	case "lookup":
		a, err := (&net.Resolver{PreferGo: true}).LookupNetIP(context.Background(), "ip4", at)
		return fmt.Sprint(a), err
	}
	return "", errors.New("nothing is called " + kind)
}

// serve answers each connection with the destination it had, and each query with
// its own bytes.
func serve(t *testing.T, s *netns.Sockets) {
	t.Helper()
	for _, f := range s.Streams {
		l, err := net.FileListener(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go answer(c.(*net.TCPConn), s.Redirected)
			}
		}()
	}
	for _, f := range s.Queries {
		p, err := net.FilePacketConn(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		go echo(p.(*net.UDPConn))
	}
	s.Close()
}

func answer(c *net.TCPConn, isRedirected bool) {
	defer c.Close()
	to := c.LocalAddr().(*net.TCPAddr).AddrPort()
	if raw, err := c.SyscallConn(); err == nil && isRedirected {
		_ = raw.Control(func(fd uintptr) {
			if got, err := netns.Original(int(fd), to.Addr().Is6()); err == nil {
				to = got
			}
		})
	}
	_, _ = io.WriteString(c, to.String())
	_, _ = io.Copy(io.Discard, c)
}

func echo(c *net.UDPConn) {
	b, oob := make([]byte, 1500), make([]byte, 128)
	for {
		n, m, _, from, err := c.ReadMsgUDPAddrPort(b, oob)
		if err != nil {
			return
		}
		_, _, _ = c.WriteMsgUDPAddrPort(b[:n], oob[:m], from)
	}
}

// who are those who have such a network, by both ways.
func who(t *testing.T, do func(t *testing.T, c netnstest.Config)) {
	t.Helper()
	for _, c := range []netnstest.Config{
		{}, {User: true}, {Plan: netns.Plan{Redirect: true}}, {User: true, Plan: netns.Plan{Redirect: true}},
	} {
		t.Run(fmt.Sprintf("user=%v,redirect=%v", c.User, c.Plan.Redirect), func(t *testing.T) { do(t, c) })
	}
}

// Every connection and every query ends at the sockets that were handed over, with
// its destination; what else there is on a network does not exist.
func TestEverythingEndsAtTheSockets(t *testing.T) {
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	reached := make(chan struct{}, 8)
	go func() {
		for {
			c, err := outside.Accept()
			if err != nil {
				return
			}
			reached <- struct{}{}
			_ = c.Close()
		}
	}()
	_, _ = attempt("tcp", outside.Addr().String()) // whose answer is none
	<-reached                                      // control: it can be reached from here
	who(t, func(t *testing.T, c netnstest.Config) {
		c.Plan.Ports = []uint16{7777}
		p := netnstest.Start(t, c, "/proc/self/exe", "reach",
			"tcp=93.184.215.14:443", "tcp=[2606:2800:21f:cb07::1]:80", "tcp=169.254.169.254:80", "tcp=255.1.2.3:9",
			"tcp=127.0.0.1:7777", "tcp=[::1]:7777", "tcp=198.18.0.2:53", "udp=198.18.0.2:53", "udp=8.8.8.8:53",
			"udp=[2001:4860:4860::8888]:53", "udp=127.0.0.53:53",
			"tcp="+outside.Addr().String(), "udp=127.0.0.1:443", "listen=127.0.0.1:0", "listen=0.0.0.0:0", "listen=[::1]:0",
			"raw", "packet", "remake")
		if p.Sockets.Redirected != c.Plan.Redirect {
			t.Errorf("redirected %v", p.Sockets.Redirected)
		}
		serve(t, p.Sockets)
		out, err := p.Wait()
		if err != nil {
			t.Errorf("%v", err)
		}
		refused := "no: connection refused\n"
		want := "tcp=93.184.215.14:443 93.184.215.14:443\n" +
			"tcp=[2606:2800:21f:cb07::1]:80 [2606:2800:21f:cb07::1]:80\n" +
			"tcp=169.254.169.254:80 169.254.169.254:80\n" + "tcp=255.1.2.3:9 255.1.2.3:9\n" +
			"tcp=127.0.0.1:7777 127.0.0.1:7777\n" + "tcp=[::1]:7777 [::1]:7777\n" +
			"tcp=198.18.0.2:53 198.18.0.2:53\n" +
			"udp=198.18.0.2:53 hello\n" + "udp=8.8.8.8:53 hello\n" + "udp=[2001:4860:4860::8888]:53 hello\n" +
			"udp=127.0.0.53:53 hello\n" +
			"tcp=" + outside.Addr().String() + " " + refused + "udp=127.0.0.1:443 " + refused +
			"listen=127.0.0.1:0 own\n" + "listen=0.0.0.0:0 own\n" + "listen=[::1]:0 own\n" +
			"raw no: operation not permitted\n" + "packet no: operation not permitted\n" +
			"remake no: operation not permitted\n"
		if out != want {
			t.Errorf("got\n%swant\n%s", out, want)
		}
		if len(reached) != 0 {
			t.Error("a connection left")
		}
	})
}

// What comes over the socket is believed only as far as it is such a message.
func TestReceiveRefuses(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for name, c := range map[string]struct {
		text []byte
		fds  []int
	}{
		"nothing":       {nil, nil},
		"no sockets":    {[]byte{3, 0, 1, 1}, nil},
		"too few":       {[]byte{3, 0, 2, 1}, []int{int(r.Fd()), int(w.Fd())}},
		"no queries":    {[]byte{3, 0, 1, 0}, []int{int(r.Fd()), int(w.Fd())}},
		"no streams":    {[]byte{3, 0, 0, 1}, []int{int(r.Fd()), int(w.Fd())}},
		"no strays":     {[]byte{3, 0, 1, 1}, []int{int(r.Fd()), int(w.Fd())}},
		"another one":   {[]byte{1, 0, 1, 1}, []int{int(r.Fd()), int(w.Fd()), int(w.Fd())}},
		"a longer one":  {[]byte{3, 0, 1, 1, 0}, []int{int(r.Fd()), int(w.Fd()), int(w.Fd())}},
		"a shorter one": {[]byte{3, 0, 1}, []int{int(r.Fd()), int(w.Fd()), int(w.Fd())}},
	} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.text) > 0 {
			err = unix.Sendmsg(pair[1], c.text, unix.UnixRights(c.fds...), nil, 0)
		}
		if err := errors.Join(err, unix.Close(pair[1])); err != nil {
			t.Fatal(err)
		}
		before := descriptors(t)
		if s, err := netns.Receive(pair[0]); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
		if after := descriptors(t); after != before {
			t.Errorf("%s: %d descriptors are left", name, after-before)
		}
		_ = unix.Close(pair[0])
	}
}

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// The pool does not hold the namespace's own addresses where names begin, and the
// own ones are in it: nothing outside is called so.
func TestAddresses(t *testing.T) {
	for _, a := range []netip.Addr{netns.Own4, netns.Resolver4} {
		if !netns.Pool4.Contains(a) || binary.BigEndian.Uint32(a.AsSlice())&0xff > 2 {
			t.Errorf("%s is not at the beginning of %s", a, netns.Pool4)
		}
	}
	if !netns.Pool6.Contains(netns.Own6) || bytes.Equal(netns.Own6.AsSlice(), netns.Pool6.Addr().AsSlice()) {
		t.Errorf("%s is not in %s", netns.Own6, netns.Pool6)
	}
}

// A signal that comes while the sockets are waited for is no end of it, as where the
// waiting is bounded and the kernel does not go on by itself.
func TestReceiveGoesOnAfterASignal(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) }()
	if err := unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 30}); err != nil {
		t.Fatal(err)
	}
	thread, done := make(chan int, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		thread <- unix.Gettid()
		s, err := netns.Receive(pair[0])
		if err == nil {
			s.Close()
		}
		done <- err
	}()
	id := <-thread
	waits := fmt.Sprint(unix.SYS_RECVMSG, " ")
	for range 3 {
		for at := ""; !strings.HasPrefix(at, waits); {
			b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", id))
			if err != nil {
				t.Fatal(err)
			}
			at = string(b)
			select {
			case err := <-done:
				t.Fatal(err)
			default:
				runtime.Gosched()
			}
		}
		if err := unix.Tgkill(unix.Getpid(), id, unix.SIGURG); err != nil {
			t.Fatal(err)
		}
	}
	stream, query := socket(t, unix.SOCK_STREAM), socket(t, unix.SOCK_DGRAM)
	s := &netns.Sockets{Streams: []*os.File{stream}, Queries: []*os.File{query}, Strays: []*os.File{query}}
	if err := s.Send(pair[1]); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func socket(t *testing.T, kind int) *os.File {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "socket")
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Of what a socket sees a place is read as far as it is the beginning of a datagram.
func TestStray(t *testing.T) {
	v4 := append([]byte{0x46}, make([]byte, 31)...) // a header of 24 bytes
	v4[9] = unix.IPPROTO_UDP
	copy(v4[16:], []byte{8, 8, 4, 4})
	copy(v4[24:], []byte{0, 99, 1, 187})
	v6 := append([]byte{0x60}, make([]byte, 47)...)
	v6[6], v6[24], v6[39], v6[43] = unix.IPPROTO_UDP, 0x20, 9, 99
	reset := append([]byte{0x45}, make([]byte, 39)...)
	reset[9], reset[33] = unix.IPPROTO_TCP, 0x14
	copy(reset[12:], []byte{127, 0, 0, 1, 8, 8, 4, 4, 0x1f, 0x90})
	reset6 := append([]byte{0x60}, make([]byte, 59)...)
	reset6[6], reset6[23], reset6[41], reset6[53] = unix.IPPROTO_TCP, 1, 80, 4
	change := func(of []byte, at int, to byte) []byte {
		of = bytes.Clone(of)
		of[at] = to
		return of
	}
	for name, c := range map[string]struct {
		packet []byte
		want   string
	}{
		"IPv4":            {v4, "8.8.4.4:443"},
		"reset":           {reset, "refused at 127.0.0.1:8080"},
		"reset of IPv6":   {reset6, "refused at [::1]:80"},
		"no reset":        {change(reset, 33, 0x12), ""},
		"reset cut off":   {reset[:39], ""},
		"another's reset": {change(reset, 12, 10), ""},
		"IPv6":            {v6, "[2000::9]:99"},
		"nothing":         {nil, ""},
		"cut off":         {v4[:len(v4)-1], ""},
		"IPv6 cut off":    {v6[:len(v6)-1], ""},
		"TCP":             {change(v4, 9, unix.IPPROTO_TCP), ""},
		"TCP of IPv6":     {change(v6, 6, unix.IPPROTO_TCP), ""},
		"no header":       {change(v4, 0, 0x41), ""},
		"another version": {change(v4, 0, 0x56), ""},
	} {
		at, refused, ok := netns.Stray(c.packet)
		got := at.String()
		if refused {
			got = "refused at " + got
		}
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s: %v %v", name, got, ok)
		}
	}
}
