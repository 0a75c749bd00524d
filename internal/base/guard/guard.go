// Package guard makes of a panic in a goroutine an error of whoever started it.
// A panic that nobody catches ends the process, and every run in it; one that is
// caught ends what the goroutine was for.
package guard

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// A Broken is a function that did not return. Its text has none of the values
// that it worked on, which may be what an agent was given.
type Broken struct {
	What  string // what the runtime says, or the type of the panic
	Where string // the function and its line; "" is not known
	Stack []byte
}

func (b *Broken) Error() string {
	if b.Where == "" {
		return "the program broke: " + b.What
	}
	return "the program broke in " + b.Where + ": " + b.What
}

// Go calls f in a goroutine of its own, and then ended, once, with what f
// returned or with a [*Broken]. What ended does is not guarded.
func Go(f func() error, ended func(error)) { go run(f, ended) }

// Call is what f returns, or a [*Broken]: for a goroutine that somebody else
// started and nobody guards.
func Call(f func() error) (err error) {
	run(f, func(e error) { err = e })
	return err
}

func run(f func() error, ended func(error)) {
	var err error
	returned := false
	defer func() {
		if !returned {
			err = broken(recover())
		}
		ended(err)
	}()
	err = f()
	returned = true
}

// broken is what a panic says. Nil is a goroutine that was ended.
func broken(what any) *Broken {
	text := fmt.Sprintf("a panic of type %T", what)
	var fault runtime.Error
	if err, is := what.(error); is && errors.As(err, &fault) {
		text = fault.Error()
	}
	if what == nil {
		text = "its goroutine was ended"
	}
	return &Broken{text, where(), debug.Stack()}
}

// where is the function that panicked: the first behind the runtime's own, which
// are behind what is deferred here. There is no path of this host in it.
func where() string {
	var at [64]uintptr
	frames := runtime.CallersFrames(at[:runtime.Callers(0, at[:])])
	panicked := false
	for {
		f, more := frames.Next()
		own := strings.HasPrefix(f.Function, "runtime.")
		if panicked && !own {
			return fmt.Sprintf("%s:%d", f.Function, f.Line)
		}
		panicked = panicked || f.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}
