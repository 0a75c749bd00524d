package lane

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// maxWords bounds what is kept of a report.
const maxWords = 8192

// listen takes in what a confined rlp reports. That nothing of the program is
// left it says last; then its status is known.
func (ch *child) listen() {
	var buf [maxWords]byte
	n, err := unix.Read(ch.said, buf[:])
	switch {
	case n > 0:
		ch.words = append(ch.words, buf[:min(n, maxWords-len(ch.words))]...)
	case n == 0 || !sandbox.IsOf(err, unix.EAGAIN, unix.EINTR):
		ch.mute = true
	}
	words, begun := bytes.CutPrefix(ch.words, []byte(sandbox.Beginning))
	status, ended := bytes.CutPrefix(words, []byte(sandbox.Ending))
	if line, _, whole := bytes.Cut(status, []byte("\n")); begun && ended && whole {
		ch.code, err = strconv.Atoi(string(line))
		ch.over = err == nil
		ch.words = []byte(sandbox.Beginning)
	}
}

// end takes in how the child ended. Where nothing of the program is left, what
// stood before it is left to end by itself.
func (ch *child) end() (unix.WaitStatus, error) {
	if ch.over {
		ch.lane.leaving = ch
		return unix.WaitStatus(ch.code), nil
	}
	return ch.reap()
}

// settle waits for what stood before the last program: to take a sandbox down takes
// as long as to build it.
func (n *native) settle() error {
	ch := n.leaving
	if ch == nil {
		return nil
	}
	n.leaving = nil
	fds := []unix.PollFd{{Fd: int32(ch.pidfd), Events: unix.POLLIN}}
	for until := time.Now().Add(killTime); time.Now().Before(until); {
		if count, err := unix.Poll(fds, int(killTime/time.Millisecond)); count > 0 || err != nil &&
			!errors.Is(err, unix.EINTR) {
			break
		}
	}
	_, err := ch.reap()
	if errors.Is(err, unix.ECHILD) { // whoever waits for every child has waited for this one
		err = nil
	}
	return errors.Join(err, n.sweep(nil), ch.close())
}
