package access

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/effect/egress"
	"runloop.dev/rlp/internal/serve/service"
)

// stranger is a user who is neither the operator nor root.
const stranger = 54321

// asStranger dials as another user: this thread's, if this is root, who may
// become anybody; otherwise the service is taken to be another user's.
func asStranger(t *testing.T, dial func() net.Conn) net.Conn {
	t.Helper()
	if os.Geteuid() != 0 {
		return dial()
	}
	conn := make(chan net.Conn)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		const keep = ^uintptr(0)
		if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, keep, stranger, keep); err != 0 {
			close(conn)
			return
		}
		conn <- dial()
	}()
	c, ok := <-conn
	if !ok {
		t.Fatal("root cannot be another user here")
	}
	return c
}

// serving is a service of this user's on loopback and at a socket that anybody
// can reach. strange says that it is somebody else's, for tests that are not root.
func serving(t *testing.T, strange bool, network, address string) (net.Listener, *kit) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	k := kitOf(t, func(o *Options) {
		o.UID = os.Geteuid()
		if strange && os.Geteuid() != 0 {
			o.UID = stranger
		}
	})
	who := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := service.CallerOf(r.Context()); c != nil {
			_, _ = io.WriteString(w, c.Name)
		}
	})
	server := &http.Server{Handler: k.Wrap(who), ConnContext: k.ConnContext, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return l, k
}

// say sends one request and returns the status and body of the answer.
func say(t *testing.T, c net.Conn, host string) (int, string) {
	t.Helper()
	return sayTo(t, c, "/runs", host)
}

// sayTo is say for another path, and further headers behind the host.
func sayTo(t *testing.T, c net.Conn, path, host string) (int, string) {
	t.Helper()
	defer c.Close()
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func dialer(t *testing.T, l net.Listener) func() net.Conn {
	return func() net.Conn {
		var d net.Dialer
		c, err := d.DialContext(t.Context(), l.Addr().Network(), l.Addr().String())
		if err != nil {
			t.Error(err)
			return nil
		}
		return c
	}
}

// The operator needs no token on this machine, and another user of it does: on
// loopback, of either family, and at a socket that its folder does not keep
// from them.
func TestPeersAreKnown(t *testing.T) {
	for _, at := range []struct{ network, address string }{
		{"tcp", "127.0.0.1:0"},
		{"tcp", "[::1]:0"},
		{"tcp", "[::ffff:127.0.0.1]:0"},
		{"unix", "@rlp-access-" + strconv.Itoa(os.Getpid())},
	} {
		l, _ := serving(t, false, at.network, at.address)
		host := "localhost"
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			host += ":" + strconv.Itoa(a.Port)
		}
		if code, body := say(t, dialer(t, l)(), host); code != http.StatusOK || body != "user:"+strconv.Itoa(os.Geteuid()) {
			t.Fatalf("control: %v: %d %s", at, code, body)
		}
		if at.network == "unix" {
			_ = l.Close() // the name is for the next
		}
		l, _ = serving(t, true, at.network, at.address)
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			host = "localhost:" + strconv.Itoa(a.Port)
		}
		code, body := say(t, asStranger(t, dialer(t, l)), host)
		if code != http.StatusUnauthorized || !strings.Contains(body, "rlp token new") {
			t.Errorf("%v: %d %s", at, code, body)
		}
	}
}

// Where anybody may ask, the operator is known by the socket, and by nothing else.
func TestOpenPathsKnowTheOperatorAtTheSocket(t *testing.T) {
	operator := "user:" + strconv.Itoa(os.Geteuid())
	socket := "@rlp-access-open-" + strconv.Itoa(os.Getpid())
	ask := func(strange bool, network, address, more string) string {
		l, _ := serving(t, strange, network, address)
		defer l.Close()
		host := "localhost"
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			host += ":" + strconv.Itoa(a.Port)
		}
		dial := dialer(t, l)
		if strange {
			dial = func() net.Conn { return asStranger(t, dialer(t, l)) }
		}
		code, body := sayTo(t, dial(), "/readyz", host+more)
		if code != http.StatusOK {
			t.Errorf("%s%s: %d %s", network, more, code, body)
		}
		return body
	}
	if who := ask(false, "unix", socket, ""); who != operator {
		t.Errorf("the operator at the socket is %q", who)
	}
	for name, who := range map[string]string{
		"another user":     ask(true, "unix", socket, ""),
		"over TCP":         ask(false, "tcp", "127.0.0.1:0", ""),
		"for another":      ask(false, "unix", socket, "\r\nX-Forwarded-For: 192.0.2.1"),
		"with a bad token": ask(false, "unix", socket, "\r\nAuthorization: Bearer x"),
	} {
		if who != "" {
			t.Errorf("%s is %q", name, who)
		}
	}
}

// Of a socket that nobody holds any more the kernel says that it is root's. One
// who asks and is gone at once is nobody.
func TestWhoIsGoneIsNobody(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a := kitOf(t, func(o *Options) { o.UID = os.Geteuid() })
	connect := func() (client, server *net.TCPConn, p *peer) {
		client = dialer(t, l)().(*net.TCPConn)
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return client, c.(*net.TCPConn), peerOf(a.ConnContext(context.Background(), c))
	}
	client, _, p := connect()
	if uid, state := p.user(); state != peerKnown || uid != os.Geteuid() {
		t.Fatalf("control: %d, %v", uid, state)
	}
	_ = client.Close()

	for name, leave := range map[string]func(*net.TCPConn){
		"closed": func(c *net.TCPConn) { _ = c.Close() },
		"reset":  func(c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() },
		"half":   func(c *net.TCPConn) { _ = c.CloseWrite() },
	} {
		client, server, p := connect()
		if _, err := io.WriteString(client, "GET /runs HTTP/1.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		leave(client)
		if n, err := server.Read(make([]byte, 8)); n == 0 && name != "reset" {
			t.Fatalf("control: %s: what was asked does not arrive: %v", name, err)
		}
		if uid, state := p.user(); state != peerUnknown {
			t.Errorf("%s: user %d, %v", name, uid, state)
		}
	}
}

// Each of what makes a socket somebody's is needed.
func TestWhichSocketsAreBelieved(t *testing.T) {
	good := socketInfo{state: tcpEstablished, uid: 1000, inode: 7}
	if uid, state := good.believed(true); uid != 1000 || state != peerKnown {
		t.Fatalf("control: %d, %v", uid, state)
	}
	for name, c := range map[string]struct {
		s         socketInfo
		connected bool
	}{
		"nobody holds it":  {socketInfo{state: tcpEstablished}, true},
		"it is closing":    {socketInfo{state: 4, inode: 7}, true},
		"it listens":       {socketInfo{state: 10, inode: 7}, true},
		"our end is gone":  {good, false},
		"a user of nobody": {socketInfo{state: tcpEstablished, uid: overflowUID, inode: 7}, true},
	} {
		if uid, state := c.s.believed(c.connected); uid != 0 || state != peerUnknown {
			t.Errorf("%s: %d, %v", name, uid, state)
		}
	}
}

// Our end of a connection that was reset is not connected, though what was sent
// before can be read.
func TestOurEndOfAConnection(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client := dialer(t, l)().(*net.TCPConn)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server := c.(*net.TCPConn)
	if !established(server) {
		t.Fatal("control: it is not connected")
	}
	must(t, client.SetLinger(0))
	must(t, client.Close())
	_, _ = server.Read(make([]byte, 1)) // until the reset has come
	if established(server) {
		t.Error("a connection that was reset is connected")
	}
}

// The socket of the home is in a folder that nobody else enters; the check of
// who connects is beside that, not instead.
func TestTheSocketsFolderIsNotTheCheck(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	path := filepath.Join(dir, "s")
	l, _ := serving(t, true, "unix", path)
	must(t, os.Chmod(path, 0o666))
	if code, _ := say(t, asStranger(t, dialer(t, l)), "x"); code != http.StatusUnauthorized {
		t.Errorf("status %d", code)
	}
}

// Of a connection that its user has closed for writing the kernel tells no user.
// Whoever guesses so, from any address of loopback, guesses as one.
func TestGuessesOfLoopbackAreOnes(t *testing.T) {
	l, k := serving(t, false, "tcp", "127.0.0.1:0")
	head := "GET /runs HTTP/1.1\r\nHost: localhost:" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port) +
		"\r\nConnection: close\r\nAuthorization: Bearer "
	const guesses = 100
	for i := range byte(guesses) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, i+2)}}
		c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, head+newToken().text+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, c) // until it is answered
		c.Close()
	}
	// Some are looked at before they are closed, and are the user's guesses; and time goes by.
	if _, held := k.Counts(); held < guesses/2 {
		t.Errorf("of %d guesses from as many addresses %d waited", guesses, held)
	}
	if one := network(netip.MustParseAddr("127.9.9.9")); one != network(netip.MustParseAddr("::1")) ||
		one == network(netip.MustParseAddr("192.0.2.1")) {
		t.Errorf("an address of loopback is counted as %s", one)
	}
}

// The kernel's answer is believed of the very socket that was asked for, and where
// all of it is there.
func TestReadDiag(t *testing.T) {
	for _, ends := range [][2]string{{"127.0.0.1:8080", "127.0.0.1:8770"}, {"[::1]:8080", "[::1]:8770"}} {
		local, remote := netip.MustParseAddrPort(ends[0]), netip.MustParseAddrPort(ends[1])
		answer := func(change func(b, body []byte)) []byte {
			b := make([]byte, diagAnswerLen)
			body := b[unix.SizeofNlMsghdr:]
			binary.NativeEndian.PutUint16(b[4:], sockDiagByFam)
			body[0], body[1] = unix.AF_INET, tcpEstablished
			if local.Addr().Is6() {
				body[0] = unix.AF_INET6
			}
			putEnds(body[4:], local, remote)
			binary.NativeEndian.PutUint32(body[64:], 1000)
			binary.NativeEndian.PutUint32(body[68:], 7)
			change(b, body)
			return b
		}
		if got, err := readDiag(answer(func(_, _ []byte) {}), local, remote); err != nil ||
			got != (socketInfo{state: tcpEstablished, uid: 1000, inode: 7}) {
			t.Fatalf("control: %+v, %v", got, err)
		}
		for name, c := range map[string]struct {
			b    []byte
			want error
		}{
			"local port":     {answer(func(_, body []byte) { body[5]++ }), errNoSocket},
			"remote port":    {answer(func(_, body []byte) { body[7]++ }), errNoSocket},
			"local address":  {answer(func(_, body []byte) { body[8]++ }), errNoSocket},
			"remote address": {answer(func(_, body []byte) { body[24]++ }), errNoSocket},
			"another type":   {answer(func(b, _ []byte) { b[4]++ }), errNoDiag},
			"cut":            {answer(func(_, _ []byte) {})[:diagAnswerLen-1], errNoDiag},
			"nothing":        {nil, errNoDiag},
			"header alone":   {answer(func(_, _ []byte) {})[:unix.SizeofNlMsghdr+3], errNoDiag},
			"no such socket": {failed(unix.ENOENT), errNoSocket},
			"another error":  {failed(unix.EPERM), errNoDiag},
		} {
			if got, err := readDiag(c.b, local, remote); err != c.want || got != (socketInfo{}) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
}

// failed is a netlink message of an error.
func failed(code unix.Errno) []byte {
	b := make([]byte, unix.SizeofNlMsghdr+4)
	binary.NativeEndian.PutUint16(b[4:], unix.NLMSG_ERROR)
	binary.NativeEndian.PutUint32(b[unix.SizeofNlMsghdr:], uint32(-int32(code)))
	return b
}

// What rlp connects for an agent is not the operator's, though the socket is of the
// operator's user: on either family, and by the type of service alone.
func TestConnectionsOfAgentsAreNobodys(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		var lc net.ListenConfig
		l, err := lc.Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out := egress.New(egress.Config{})
		defer out.Close()
		for name, c := range map[string]struct {
			dial func() (net.Conn, error)
			want peerState
		}{
			"control": {func() (net.Conn, error) { return dialer(t, l)(), nil }, peerKnown},
			"an agent": {func() (net.Conn, error) {
				return out.Connect(t.Context(), l.Addr().String(), true)
			}, peerUnknown},
		} {
			client, err := c.dial()
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			server, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			if _, state := (&peer{conn: server}).user(); state != c.want {
				t.Errorf("%s, %s: %v, want %v", address, name, state, c.want)
			}
		}
	}
}
