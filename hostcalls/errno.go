package hostcalls

import (
	"errors"

	"runloop.dev/rlp/caps"
)

// An Errno is an error number of the guest interface: WASI's own, so that libc
// and Go know them. A guest receives minus its value.
type Errno int32

// The error numbers that an import can answer.
const (
	TooBig   Errno = 1
	Acces    Errno = 2
	Again    Errno = 6
	Dquot    Errno = 19
	Fault    Errno = 21
	Inval    Errno = 28
	IO       Errno = 29
	Noent    Errno = 44
	Nosys    Errno = 52
	Notsup   Errno = 58
	TimedOut Errno = 73
)

var errnoWords = map[Errno]string{
	TooBig: "2big", Acces: "acces", Again: "again", Dquot: "dquot", Fault: "fault", Inval: "inval",
	IO: "io", Noent: "noent", Nosys: "nosys", Notsup: "notsup", TimedOut: "timedout",
}

// String is the number's word, as the JSON object of an error shows it.
func (e Errno) String() string { return errnoWords[e] }

// A Fail is how a call tells the guest that it did not happen: a number and a
// sentence that the guest may read. It never ends the run.
type Fail struct {
	Errno Errno
	// Hint says what to do instead.
	Hint string
	// Reason is a word of the log for it, where one fits; the zero value is none.
	Reason caps.Code
}

func (f *Fail) Error() string { return f.Errno.String() + ": " + f.Hint }

// ErrNoPrograms is what [Exec.Find] says of a path into a folder in which no
// file is a program, whatever grants it.
var ErrNoPrograms = errors.New("no folder for programs")

// ErrNotData is what [Exec.Leads] says of what a program can run or talk to.
var ErrNotData = errors.New("not data")
