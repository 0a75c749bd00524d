package lane

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// maxWords bounds what is kept of a report.
const maxWords = 32 << 10

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
	for begun {
		line, rest, whole := bytes.Cut(words, []byte("\n"))
		if !whole || !ch.hear(string(line)) {
			break
		}
		words = rest
		ch.words = append([]byte(sandbox.Beginning), rest...)
	}
}

// hear takes in a line of what is said while a program runs, and whether it is one.
func (ch *child) hear(line string) bool {
	if what, is := strings.CutPrefix(line, sandbox.Refusing); is {
		if ch.refusals != nil {
			ch.refusals(what)
		}
		return true
	}
	if question, is := strings.CutPrefix(line, sandbox.Executing); is {
		ch.answer(question)
		return true
	}
	if use, is := strings.CutPrefix(line, sandbox.Using); is {
		if path, err := strconv.Unquote(use[min(2, len(use)):]); err == nil && ch.used != nil {
			ch.used(use[0], use[1] == '+', path)
		}
		return true
	}
	status, is := strings.CutPrefix(line, sandbox.Ending)
	if code, err := strconv.Atoi(status); is && err == nil {
		ch.code, ch.over = code, true
	}
	return is
}

// asking has a broker ask what c's program executes, where there can be one.
func (ch *child) asking(p *sandbox.Plan, c *Command) {
	if p.Asks = c.Asked != nil && p.Links; !p.Asks {
		return
	}
	ch.asked, p.Each = c.Asked, c.Each
	ch.used, p.Learns = c.Used, c.Used != nil
	if p.Executes != nil && !p.Executes.Others { // what interprets scripts nobody granted by itself
		for _, file := range p.Executes.Files {
			if !slices.Contains(c.Executes.Files, file) {
				p.Unasked = append(p.Unasked, file)
			}
		}
	}
}

// answer answers a question about a file.
func (ch *child) answer(question string) {
	answer := []byte{0}
	by, name := question[:min(1, len(question))], question[min(1, len(question)):]
	file, err := strconv.Unquote(name)
	if err == nil && ch.asked != nil && ch.asked(file, by == sandbox.Written) {
		answer[0] = sandbox.Allowed
	}
	_, _ = unix.Write(ch.said, answer) // whoever asked may be gone
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
