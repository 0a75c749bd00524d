package sandbox

import (
	"errors"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// A watch asks rlp, by [ReportFile], what a program may execute.
type watch struct {
	begun   bool // the program itself was executed
	each    bool // every time
	unasked []string
	answers map[string]bool
}

// Executing begins the line that asks; a letter says whether the program could have
// written the file, and the path follows in quotes. [Allowed] is the answer.
const (
	Executing = "executing "
	Written   = "w"
	Unwritten = "r"
	Allowed   = 'y'
)

// mostAnswers bounds what is remembered.
const mostAnswers = 4096

func (w *watch) mayExecute(file string, written bool) bool {
	if slices.Contains(w.unasked, file) {
		return true
	}
	if answer, known := w.answers[file]; known && !w.each {
		return answer
	}
	by := Unwritten
	if written {
		by = Written
	}
	answer := said(Executing+by+strconv.Quote(file)+"\n") && heard() == Allowed
	if len(w.answers) >= mostAnswers {
		clear(w.answers)
	}
	w.answers[file] = answer
	return answer
}

// said writes a whole line of the report.
func said(line string) bool {
	for len(line) > 0 {
		n, err := unix.Write(ReportFile, []byte(line))
		if err != nil && !waited(err, unix.POLLOUT) {
			return false
		}
		line = line[max(n, 0):]
	}
	return true
}

// heard is the next byte that rlp answers, 0 where it is gone.
func heard() byte {
	var got [1]byte
	for {
		n, err := unix.Read(ReportFile, got[:])
		if err == nil && n == 1 {
			return got[0]
		}
		if err == nil || !waited(err, unix.POLLIN) {
			return 0
		}
	}
}

// waited waits until the report can go on, and reports whether that is all there is to
// an error.
func waited(err error, events int16) bool {
	if errors.Is(err, unix.EINTR) {
		return true
	}
	if !errors.Is(err, unix.EAGAIN) {
		return false
	}
	_, err = unix.Poll([]unix.PollFd{{Fd: ReportFile, Events: events}}, -1)
	return err == nil || errors.Is(err, unix.EINTR)
}
