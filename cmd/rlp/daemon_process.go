package main

import (
	"os"
	"path/filepath"

	"runloop.dev/rlp/internal/serve/daemon"
)

// An invoker is the process for which the daemon does an invocation: what
// any other invocation takes from its own process, that one takes from here.
type invoker struct {
	call *daemon.Call
	dir  string      // the client's folder, as the client would write it
	home string      // the one that is served
	own  environment // of the helper's process

	declined string // why the client has to launch by itself
}

// getwd is where relative paths begin.
func (a *app) getwd() (string, error) {
	if a.invoker == nil {
		return os.Getwd()
	}
	return a.invoker.dir, nil
}

// here does what opens a relative path.
func (a *app) here(do func()) error {
	s := a.invoker
	if s == nil {
		do()
		return nil
	}
	return s.call.Here(func(dir string) {
		s.dir = asWritten(a.getenv("PWD"), dir)
		do()
	})
}

// asWritten is a folder as the client's shell writes it, if that is where the
// client is: links that lead there are kept, as [os.Getwd] keeps them.
func asWritten(pwd, dir string) string {
	if filepath.IsAbs(pwd) && isFile(pwd, dir) {
		return pwd
	}
	return dir
}

// self is the file of this program, for what it starts itself again as. A helper
// may be older than what lies under its name.
func (a *app) self() (string, error) {
	if a.invoker == nil {
		return selfPath()
	}
	return "/proc/self/exe", nil
}
