package lane

import (
	"errors"
	"fmt"
)

// What a program can be refused for.
var (
	ErrNotExist   = errors.New("no such program")
	ErrNotProgram = errors.New("not an executable regular file")
	ErrClosed     = errors.New("no folder for programs")
	ErrNotData    = errors.New("it can be run, or is no file")
	ErrDir        = errors.New("not a folder within the working folder")
	ErrTooBig     = errors.New("more arguments and environment than the system takes")
	ErrStray      = errors.New("processes that do not end")
)

// An UnsupportedError says that a lane is not to be had here, and what the
// operator can do about it, where there is anything.
type UnsupportedError struct {
	Lane, Why, Remedy string

	links bool // it is to be had where links are not judged
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("the lane %s is not available: %s", e.Lane, e.Text())
}

// Text is the error without the lane's name.
func (e *UnsupportedError) Text() string {
	if e.Remedy == "" {
		return e.Why
	}
	return e.Why + " (" + e.Remedy + ")"
}
