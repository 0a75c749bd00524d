package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// answers is a program that gives back each line in capitals, on one loopback address.
const answers = `
import socket, socketserver, sys
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile: self.wfile.write(line.upper())
class Server(socketserver.ThreadingTCPServer):
    request_queue_size = 64
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = Server((sys.argv[1], int(sys.argv[2])), Handler)
print("listening", flush=True)
s.serve_forever()
`

// freePort is one of the host's loopback addresses that nobody has.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// listening starts rlp run of that program, and waits until it listens.
func listening(t *testing.T, home, at, port string, args ...string) *exec.Cmd {
	t.Helper()
	c := runIn(home, "web", append(args, "--", "/usr/bin/python3", "-c", answers, at, port)...)
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "listening\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return c
}

// gives is what a connection gets for a line, "" where it is refused or cut.
func gives(c net.Conn, line string) string {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return ""
	}
	said, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSuffix(said, "\n")
}

func givesAt(t *testing.T, at, line string) string {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		return ""
	}
	defer c.Close()
	return gives(c, line)
}

// A port of the host's loopback leads to the same port of the program, whichever loopback
// address that listens at; each connection is recorded. No other address of the host
// does, and nothing does when the run has ended.
func TestAPublishedPort(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, at := range []string{"127.0.0.1", "::1"} {
		port := freePort(t)
		c := listening(t, home, at, port, "--publish", port, "--audit-allow")
		for range 40 { // more than there are sockets
			if said := givesAt(t, "127.0.0.1:"+port, "hello"); said != "HELLO" {
				t.Fatalf("%s: %q", at, said)
			}
		}
		if said := givesAt(t, "[::1]:"+port, "six"); said != "SIX" {
			t.Errorf("%s: %q", at, said)
		}
		addrs, err := net.InterfaceAddrs()
		must(t, err)
		for _, a := range addrs {
			ip := a.(*net.IPNet).IP
			if !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
				if said := givesAt(t, net.JoinHostPort(ip.String(), port), "x"); said != "" {
					t.Errorf("%s is answered: %q", ip, said)
				}
			}
		}
		must(t, c.Process.Signal(os.Interrupt))
		_ = c.Wait()
		if said := givesAt(t, "127.0.0.1:"+port, "late"); said != "" {
			t.Errorf("after its end: %q", said)
		}
		log := start(t, append(os.Environ(), "HOME="+home, "RUNLOOP_HOME="), "rlp", "audit", "list", "--json").stdout
		for _, want := range []string{
			`"cap":"net.connect","op":"publish","target":"tcp://publish.rlp:` + port + `"`, `"verb":"publish","status":"ok"`,
			"network:tcp:publish.rlp:" + port,
		} {
			if !strings.Contains(log, want) {
				t.Errorf("the log has no %s", want)
			}
		}
	}
	port := freePort(t)
	listening(t, home, "127.0.0.1", port)
	if said := givesAt(t, "127.0.0.1:"+port, "x"); said != "" {
		t.Errorf("control: without --publish: %q", said)
	}
}

// Connections to a program are bounded in number, those that ended make room, and an
// edit that takes the port cuts what is open and refuses what comes.
func TestAPublishedPortIsBounded(t *testing.T) {
	t.Parallel()
	home, port := t.TempDir(), freePort(t)
	listening(t, home, "127.0.0.1", port, "--publish", port)
	var open []net.Conn
	for i := range 16 {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		must(t, err)
		defer c.Close()
		if said := gives(c, fmt.Sprint("n", i)); said != fmt.Sprint("N", i) {
			t.Fatalf("%d: %q", i, said)
		}
		open = append(open, c)
	}
	if said := givesAt(t, "127.0.0.1:"+port, "more"); said != "" {
		t.Errorf("one more: %q", said)
	}
	must(t, open[0].Close())
	soon(t, "there is room", func() bool { return givesAt(t, "127.0.0.1:"+port, "room") == "ROOM" })
	override := filepath.Join(home, ".runloop", "caps", "overrides", "web.toml")
	must(t, os.WriteFile(override, []byte("[capabilities]\nnet = []\n"), 0o600))
	must(t, open[1].SetReadDeadline(time.Now().Add(10*time.Second)))
	if n, err := open[1].Read(make([]byte, 1)); n != 0 || os.IsTimeout(err) {
		t.Errorf("an open connection: %d, %v", n, err)
	}
	if said := givesAt(t, "127.0.0.1:"+port, "x"); said != "" {
		t.Errorf("after the edit: %q", said)
	}
}

// What is no port for a program is refused, what a layer takes is not opened, and what
// another program has refuses the run.
func TestPortsThatAreNotPublished(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	six, err := net.Listen("tcp", "[::1]:0") // who has the other address would be asked in our place
	must(t, err)
	defer six.Close()
	port := func(l net.Listener) string { return strconv.Itoa(l.Addr().(*net.TCPAddr).Port) }
	free := freePort(t)
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--publish", "80"}, 2, "from 1024 to 65535"},
		{[]string{"--publish", "65536"}, 2, "65535"},
		{[]string{"--publish", "8770"}, 2, "port of rlp serve"},
		{[]string{"--publish", free, "--publish", free}, 2, "given twice"},
		{[]string{"--publish", port(taken)}, 69, "cannot be had"},
		{[]string{"--publish", port(six)}, 69, "cannot be had"},
		{[]string{"--publish", free, "--allow", "network:tcp:127.0.0.1:" + free}, 65, "grants this port of the host"},
		{[]string{"--publish", free, "--deny", "network:tcp:*"}, 0, "has no effect"},
		{[]string{"--publish", free, "--deny", "tool:call:web:publish"}, 0, "has no effect"},
		{[]string{"--publish", free}, 0, ""},
	} {
		out, err := runIn(home, "ports", append(c.args, "--", "true")...).CombinedOutput()
		status := 0
		if exit, is := err.(*exec.ExitError); is {
			status = exit.ExitCode()
		}
		if status != c.status || !strings.Contains(string(out), c.says) || c.says == "" && len(out) > 0 {
			t.Errorf("%q: %d, %s", c.args, status, out)
		}
	}
	for layer, opens := range map[string]bool{"network:tcp:*": false, "network:https:*": true} {
		port := freePort(t)
		listening(t, home, "127.0.0.1", port, "--publish", port, "--deny", layer)
		if said := givesAt(t, "127.0.0.1:"+port, "x"); (said == "X") != opens {
			t.Errorf("without %s: %q", layer, said)
		}
	}
}
