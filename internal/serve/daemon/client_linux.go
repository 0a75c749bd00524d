package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"runloop.dev/rlp/internal/base/strictjson"
)

// firstAnswer is how long the serving process has for its first answer.
const firstAnswer = 10 * time.Second

// connectWithin is how long it has to have room for another connection.
const connectWithin = 200 * time.Millisecond

// maxSocketPath is what fits into the address of a socket.
const maxSocketPath = 107

// A Client is a connection to the process that serves.
type Client struct {
	fd    int
	proof [proofLen]byte
}

// An Answer is what came of a request.
type Answer struct {
	Taken  bool   // it was begun: nobody else may do it
	Status int    // the exit status, if it was taken
	Why    string // why it was not taken, or what became of the one who took it
	Lost   bool   // whoever took it is gone
	Text   []byte // of a request for status
}

// Dial connects with the process that serves at path. That is one system call
// that fails where there is none.
func Dial(path string) (*Client, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	c := &Client{fd: fd}
	if err := c.connect(path); err != nil {
		c.Close()
		return nil, err
	}
	if err := c.recognize(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() { _ = syscall.Close(c.fd) }

func (c *Client) connect(path string) error {
	if len(path) > maxSocketPath {
		dir, err := syscall.Open(filepath.Dir(path), oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return ErrNobody
		}
		defer syscall.Close(dir)
		path = "/proc/self/fd/" + strconv.Itoa(dir) + "/" + filepath.Base(path)
	}
	wait := syscall.NsecToTimeval(int64(connectWithin))
	if err := syscall.SetsockoptTimeval(c.fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &wait); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	err := syscall.Connect(c.fd, &syscall.SockaddrUnix{Name: path})
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return ErrNobody
	}
	return os.NewSyscallError("connect", err)
}

const oPath = 0x200000 // O_PATH, which syscall has no word for

// recognize looks who serves, before anything is said: this user, and a process
// that this one may look into.
func (c *Client) recognize() error {
	peer, err := syscall.GetsockoptUcred(c.fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return os.NewSyscallError("getsockopt", err)
	}
	if int(peer.Uid) != syscall.Geteuid() {
		return fmt.Errorf("the socket is served by user %d", peer.Uid)
	}
	link := make([]byte, 64)
	n, err := syscall.Readlink("/proc/"+strconv.Itoa(int(peer.Pid))+"/fd/"+strconv.Itoa(proofFD), link)
	if err != nil || n < len(proofPrefix)+proofLen || string(link[:len(proofPrefix)]) != proofPrefix {
		return fmt.Errorf("process %d, which serves, may not be looked into", peer.Pid)
	}
	copy(c.proof[:], link[len(proofPrefix):])
	if stopped(int(peer.Pid)) {
		return fmt.Errorf("process %d, which serves, is stopped", peer.Pid)
	}
	return nil
}

// stopped reports whether a process has been stopped, by Ctrl-Z or a debugger.
// What is sent to it waits there, and so do the streams: whoever reads the output
// would wait for its end long after the client's.
func stopped(pid int) bool {
	fd, err := syscall.Open("/proc/"+strconv.Itoa(pid)+"/stat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	text := make([]byte, 64) // a number, a name of at most 15 bytes in parentheses, the state
	n, err := syscall.Read(fd, text)
	if err != nil {
		return false
	}
	name := bytes.LastIndexByte(text[:n], ')')
	return name >= 0 && name+2 < n && (text[name+2] == 'T' || text[name+2] == 't')
}

// Send asks for something. files are this process's streams, if the request has
// any use for them.
func (c *Client) Send(r Request, files ...int) error {
	r.proof = c.proof
	packet, err := r.encode()
	if err != nil {
		return err
	}
	var rights []byte
	if len(files) > 0 {
		rights = syscall.UnixRights(files...)
	}
	n, err := syscall.SendmsgN(c.fd, packet, rights, nil, syscall.MSG_NOSIGNAL)
	if err != nil {
		return os.NewSyscallError("sendmsg", err)
	}
	if n != len(packet) {
		return errTooLarge
	}
	return nil
}

// Cancel asks for what was begun to be ended.
func (c *Client) Cancel() {
	// who is gone needs no telling
	_, _ = syscall.SendmsgN(c.fd, []byte{cancel}, nil, nil, syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT)
}

// Wait waits for what comes of the request.
func (c *Client) Wait() Answer {
	var a Answer
	packet := make([]byte, maxAnswer)
	c.within(firstAnswer)
	for {
		n, _, err := syscall.Recvfrom(c.fd, packet, 0)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return c.tooLate(packet)
		case err != nil || n == 0:
			a.Lost = a.Taken
			return a
		case c.said(&a, packet[:n]):
			return a
		}
		if a.Taken {
			c.within(0) // which is for ever
		}
	}
}

// within bounds each wait from now on.
func (c *Client) within(d time.Duration) {
	t := syscall.NsecToTimeval(int64(d))
	_ = syscall.SetsockoptTimeval(c.fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &t) // without, it waits longer
}

// said takes an answer in, and reports whether it is the last one.
func (c *Client) said(a *Answer, packet []byte) bool {
	switch packet[0] {
	case begun:
		a.Taken = true
		return false
	case ended:
		a.Taken = len(packet) == 2
		if a.Taken {
			a.Status = int(packet[1])
		}
	case declined:
		a.Why = string(packet[1:])
	case text:
		a.Text = append(a.Text, packet[1:]...)
	}
	return true
}

// tooLate gives up who has not answered in time: after the shutdown it can say
// nothing more, so that what it has not begun by now it never begins.
func (c *Client) tooLate(packet []byte) Answer {
	_ = syscall.Shutdown(c.fd, syscall.SHUT_RDWR)
	a := Answer{Why: "it did not answer in time"}
	for {
		n, _, err := syscall.Recvfrom(c.fd, packet, syscall.MSG_DONTWAIT)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			a.Lost = a.Taken
			return a
		}
		if packet[0] == begun || packet[0] == ended {
			a.Taken = true
		}
		if c.said(&a, packet[:n]) {
			return a
		}
	}
}

// Ask asks the process at path for a status or to stop.
func Ask(path string, kind byte) (*State, error) {
	c, err := Dial(path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.Send(Request{Kind: kind}); err != nil {
		return nil, err
	}
	a := c.Wait()
	if a.Text == nil {
		return nil, fmt.Errorf("asking the process that serves: it declined (%s)", a.Why)
	}
	s := new(State)
	if err := strictjson.Unmarshal(a.Text, s, strictjson.UnknownFields); err != nil {
		return nil, fmt.Errorf("asking the process that serves: %w", err)
	}
	return s, nil
}

// Ended waits until nobody serves in dir any more, or stop is closed.
func Ended(dir string, stop <-chan struct{}) error {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("waiting for the end: %w", err)
	}
	free := make(chan error, 1)
	go func() {
		free <- errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_SH), f.Close())
	}()
	select {
	case err := <-free:
		return err
	case <-stop:
		return nil
	}
}
