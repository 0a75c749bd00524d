package lane

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// connecting tries each way to a socket, and says which led to somebody.
const connecting = `
import os, socket, sys, threading
granted, home, readonly = sys.argv[1:4]
def say(what, do):
    try:
        do(); print(what, "yes")
    except OSError as e:
        print(what, os.strerror(e.errno))
def connect(to, kind=socket.SOCK_STREAM, wait=None):
    def do():
        s = socket.socket(socket.AF_UNIX, kind)
        s.settimeout(wait)
        s.connect(to)
        s.sendall(b"x")
    return do
def no(do):
    try:
        do()
    except OSError: # which one depends on what is open
        raise PermissionError(13, "")
def serve(at, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(at); s.listen()
    def accept():
        while 1: s.accept()[0].recv(1)
    threading.Thread(target=accept, daemon=True).start()
for where in ["/tmp/s", home + "/s", "\\0name"]:
    say("serve", lambda: serve(where))
    say("blocking", connect(where))
    say("not blocking", connect(where, wait=5))
say("packets", lambda: (serve("/tmp/p", socket.SOCK_SEQPACKET), connect("/tmp/p", socket.SOCK_SEQPACKET)()))
say("in a thread", lambda: None)
t = threading.Thread(target=lambda: say("thread", connect("/tmp/s"))); t.start(); t.join()
os.chdir("/tmp"); say("relative", connect("s"))
os.symlink(home + "/s", "/tmp/own"); say("link", connect("/tmp/own"))
say("missing", connect("/tmp/none"))
# what is the host's
say("host", connect(granted + "/docker.sock"))
os.symlink(granted + "/docker.sock", "/tmp/l"); say("by a link", connect("/tmp/l"))
os.symlink(granted, "/tmp/d"); say("by a folder", connect("/tmp/d/docker.sock"))
os.chdir(granted); say("from there", connect("docker.sock")); say("short", connect("./docker.sock"))
fd = os.open(granted, os.O_RDONLY); say("by a descriptor", lambda: no(connect("/proc/self/fd/%d/docker.sock" % fd)))
say("by dots", connect("/tmp/../" + granted + "/docker.sock"))
say("renamed", lambda: (os.rename(granted + "/docker.sock", granted + "/r"), connect(granted + "/r")()))
os.rename(granted + "/r", granted + "/docker.sock")
say("linked there", lambda: (os.link(granted + "/docker.sock", granted + "/l"), connect(granted + "/l")()))
say("in a thread", lambda: None)
t = threading.Thread(target=lambda: say("thread", connect(granted + "/docker.sock"))); t.start(); t.join()
say("not blocking", connect(granted + "/docker.sock", wait=5))
say("read-only", connect(readonly + "/docker.sock"))
open(granted + "/ask", "w").close(); open(granted + "/told").close()
say("made later", connect(granted + "/later.sock"))
say("datagrams", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", granted + "/log"))
say("a pair of datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", granted + "/log"))
say("a pair", lambda: socket.socketpair()[0].connect(granted + "/docker.sock"))
say("name", connect("\0" + granted))
say("serve there", lambda: serve(granted + "/mine"))
say("moved", lambda: (os.rename(granted + "/docker.sock", "/tmp/moved"), connect("/tmp/moved")()))
say("linked", lambda: (os.link(granted + "/docker.sock", home + "/linked"), connect(home + "/linked")()))
`

// Programs speak with each other over sockets of Unix in their private folders, and
// reach none of the host's, whatever folder it lies in and however it is named.
func TestSocketsOfUnixAreTheProgramsOwn(t *testing.T) {
	if _, err := exec.LookPath("/usr/bin/python3"); err != nil {
		t.Log("smaller: python3 is not installed")
		return
	}
	dir, home, readOnly := shared(t), shared(t), shared(t)
	reached := make(chan string, 100)
	listen := func(at string) {
		l, err := net.Listen("unix", at)
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
				_ = c.Close()
				reached <- at
			}
		}()
	}
	listen(dir + "/docker.sock")
	listen(readOnly + "/docker.sock")
	listen("@" + dir)
	log, err := net.ListenPacket("unixgram", dir+"/log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, f := range []string{"ask", "told"} {
		if err := unix.Mkfifo(filepath.Join(dir, f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	eachSandbox(t, func(t *testing.T, name string) {
		for _, f := range []string{home + "/s", dir + "/l", dir + "/later.sock"} {
			_ = os.Remove(f)
		}
		later := make(chan struct{})
		go func() {
			defer close(later)
			_, _ = os.ReadFile(dir + "/ask") // until the program asks
			listen(dir + "/later.sock")
			_ = os.WriteFile(dir+"/told", nil, 0)
		}()
		l := newLane(t, name, func(c *Config) { c.Work = home + "/" + name + "/run" })
		c := shell(t, "")
		c.Argv = []string{"sh", "-c", `exec /usr/bin/python3 -c "$0" "$@"`, connecting, dir, home, readOnly}
		c.Folders = []Folder{
			{Path: dir, Access: ReadWrite}, {Path: home, Access: ReadWrite, Own: true}, {Path: readOnly, Access: ReadOnly},
		}
		c.Network = towards("127.0.0.1:1")
		r := run(t, l, c)
		const served = "serve yes\nblocking yes\nnot blocking yes\n"
		want := served + served + served + "packets yes\nin a thread yes\nthread yes\nrelative yes\nlink yes\n" +
			"missing No such file or directory\n" + strings.ReplaceAll(
			"host no\nby a link no\nby a folder no\nfrom there no\nshort no\nby a descriptor no\nby dots no\n"+
				"renamed no\nlinked there no\nin a thread yes\nthread no\nnot blocking no\nread-only no\nmade later no\n"+
				"datagrams no\na pair of datagrams no\n", " no\n", " Permission denied\n") +
			"a pair Permission denied\nname Connection refused\nserve there Permission denied\n" +
			"moved Invalid cross-device link\nlinked Invalid cross-device link\n"
		if got := string(r.Stdout.Data); got != want {
			t.Errorf("%s\n%s\nwant %s", got, r.Stderr.Data, want)
		}
		<-later
		if len(reached) != 0 {
			t.Errorf("the host's was reached: %s", <-reached)
		}
	})
	l := newLane(t, "ns", func(c *Config) { c.Work = home + "/again/run" })
	own, operators := Folder{Path: home, Access: ReadWrite, Own: true}, Folder{Path: dir, Access: ReadOnly}
	definitions, _, _ := strings.Cut(connecting, "for where in")
	for name, c := range map[string]struct {
		folders []Folder
		want    string
	}{
		"nothing of the operator's": {[]Folder{own}, "first yes\ndatagrams yes\n"},
		"something":                 {[]Folder{own, operators}, "first yes\ndatagrams Permission denied\n"},
		"within /tmp": {
			[]Folder{own, {Path: t.TempDir(), Access: ReadOnly}},
			"first Permission denied\ndatagrams Permission denied\n",
		},
	} {
		cmd := shell(t, "")
		cmd.Argv = []string{
			"sh", "-c", `exec /usr/bin/python3 -c "$0" "$@"`,
			definitions + `say("first", lambda: (serve("/tmp/first"), connect("/tmp/first")()))
say("datagrams", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))`, dir, home, readOnly,
		}
		cmd.Folders, cmd.Network = c.folders, towards("127.0.0.1:1")
		if r := run(t, l, cmd); string(r.Stdout.Data) != c.want {
			t.Errorf("%s: %s%s", name, r.Stdout.Data, r.Stderr.Data)
		}
	}
	for _, at := range []string{dir + "/docker.sock", readOnly + "/docker.sock", "@" + dir, dir + "/later.sock"} {
		c, err := net.Dial("unix", at) // control: as the same user, outside
		if err != nil {
			t.Error(err)
			continue
		}
		_ = c.Close()
		if got := <-reached; got != at {
			t.Errorf("%s: %s", at, got)
		}
	}
	if c, err := net.Dial("unixgram", dir+"/log"); err != nil {
		t.Error(err)
	} else {
		_ = c.Close()
	}
}

// What programs start to speak with by sockets of Unix works, a folder of the operator's
// beside it or none.
func TestOwnServersOfPrograms(t *testing.T) {
	for _, name := range []string{"python3", "node", "ssh-agent"} {
		if _, err := os.Stat("/usr/bin/" + name); err != nil {
			t.Logf("smaller: %s is not installed", name)
			return
		}
	}
	const speaking = `export HOME=$PWD TMPDIR=/tmp PATH=/usr/bin:/bin
python3 -c '
import multiprocessing as m
with m.Manager() as g: d = g.dict(); p = m.Process(target=d.update, args=({1: "python"},)); p.start(); p.join(); print(d[1])
with m.get_context("forkserver").Pool(1) as p: print(p.apply(str.upper, ("pool",)))'
node -e '
const net = require("net"), s = net.createServer(c => c.end("node\n")).listen("/tmp/node.sock", () =>
  net.connect("/tmp/node.sock").on("data", d => process.stdout.write(d)).on("end", () => s.close()))'
ssh-agent -D -a /tmp/agent >/dev/null & until [ -S /tmp/agent ]; do :; done
export SSH_AUTH_SOCK=/tmp/agent
rm -f key; ssh-keygen -q -t ed25519 -N '' -f key && ssh-add -q key && ssh-add -l | sed 's/.*(/(/'; kill $!`
	home, dir := shared(t), shared(t)
	l := newLane(t, "ns", func(c *Config) { c.Work = home + "/run" })
	own, operators := Folder{Path: home, Access: ReadWrite, Own: true}, Folder{Path: dir, Access: ReadWrite}
	for _, folders := range [][]Folder{{own}, {own, operators}} {
		c := shell(t, speaking)
		c.Folders, c.Network = folders, towards("127.0.0.1:1")
		if r := run(t, l, c); string(r.Stdout.Data) != "python\nPOOL\nnode\n(ED25519)\n" {
			t.Errorf("%d folders: %s%s", len(folders), r.Stdout.Data, r.Stderr.Data)
		}
	}
}

// connectingOften is how long connections take to begin, in microseconds: the least and
// the middle of many, to a server of the program's own.
const connectingOften = `
import socket, threading, time
l = socket.create_server(("127.0.0.1", 0), backlog=64)
took = []
for _ in range(2000):
    s = socket.socket(); began = time.perf_counter_ns(); s.connect(l.getsockname()); took.append(time.perf_counter_ns() - began)
    l.accept()[0].close(); s.close()
took.sort()
print(took[0] / 1e3, took[len(took) // 2] / 1e3)
`

// What it costs to begin a connection, plainly, where nothing of the operator's is seen,
// and where a broker looks for sockets of Unix.
func BenchmarkConnect(b *testing.B) {
	dir, l := b.TempDir(), newLane(b, "ns")
	said := func(b *testing.B, text []byte) {
		var least, middle float64
		if _, err := fmt.Sscan(string(text), &least, &middle); err != nil {
			b.Fatalf("%v: %s", err, text)
		}
		b.ReportMetric(least, "us-least")
		b.ReportMetric(middle, "us-middle")
	}
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			out, err := exec.Command("/usr/bin/python3", "-c", connectingOften).Output()
			if err != nil {
				b.Fatal(err)
			}
			said(b, out)
		}
	})
	for name, folders := range map[string][]Folder{"alone": nil, "broker": {{Path: dir, Access: ReadOnly}}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c := shell(b, "")
				c.Argv = []string{"sh", "-c", `exec /usr/bin/python3 -c "$0"`, connectingOften}
				c.Folders, c.Network = folders, towards("127.0.0.1:1")
				said(b, run(b, l, c).Stdout.Data)
			}
		})
	}
}
