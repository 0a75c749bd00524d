package hostcalls

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/environ"
)

// A variable of a program is passed on in one of three ways. Those that steer
// programs are refused by name (isSteering). Of some more it is known what
// programs take them for, and they pass with values that are that
// (package environ). Of the others nothing is known: programs run what they name,
// with files, arguments or stdin of the agent's. They pass with a value that is no
// code and leads to none: a secret, or data which the agent may not write.

// variable says what is wrong with the value that a request, or a tool, gives a
// variable of a program that gets holds: "" nothing.
func (x *execution) variable(v envVar) string {
	f := environ.FormOf(v.name)
	switch {
	case f != nil && f.Takes(v.value), x.h.isHandle(v.value):
		return ""
	case environ.IsPath(v.value):
		return x.leadsAstray(v.value)
	case f != nil:
		return "takes " + f.Says + ", a secret's handle alone, or one absolute path"
	}
	return "is no variable of which rlp knows that no program runs its value: write a secret's handle alone, or one " +
		"absolute path " +
		"(of letters, digits and _ . + -, without .. and a slash at its end) of data that the agent may not write; give " +
		"anything else as an argument, or leave it out"
}

// leadsAstray says why a program is not given the path: it is shown something else
// there, somebody can have it run what lies there, or the agent may write it.
func (x *execution) leadsAstray(written string) string {
	shown := func(p string) bool {
		return p == nullDevice || x.h.cfg.Exec.Shows(p) || x.holds.Check(caps.Request{
			Family: caps.FS, Mode: caps.Read,
			Name: p,
		}).Allow
	}
	unseen := written + " is nothing that the program is shown; name data in /usr/share, or have the operator grant " +
		"reading it (fs)"
	if !shown(written) {
		return unseen // and nothing is said of what lies there
	}
	leads, err := x.h.cfg.Exec.Leads(written)
	switch {
	case errors.Is(err, ErrNoPrograms):
		return written + " is in /proc, /sys, /dev or rlp's home, where the agent has files of its own; name data elsewhere"
	case errors.Is(err, ErrNotData):
		return written + " is a program or a device, or a folder that holds one, and what a variable names may be run; " +
			"name data alone"
	case errors.Is(err, fs.ErrNotExist):
		return "nothing is at " + written + "; name data that is there"
	case err != nil:
		return "nobody can tell what " + written + " leads to; name data elsewhere"
	}
	for _, p := range leads {
		if scope := x.h.exec.mayWrite(p); scope != "" {
			return fmt.Sprintf("the agent may write %s, and so what the program finds by %s; name data elsewhere, or take it "+
				"out of fs_rw", scope, written)
		}
		if !shown(p) {
			return unseen
		}
	}
	return ""
}

// nullDevice holds nothing, whoever writes it.
const nullDevice = "/dev/null"

// mayWrite is the path that the agent could write when the run began and that is
// p, holds it, or lies in it; "" if there is none.
func (s *execState) mayWrite(p string) string {
	set := s.atLaunch
	if s.mayChange(p) {
		return p
	}
	for _, g := range set.Grants() {
		if g.Family == caps.FS && (g.Modes.Has(caps.Write) || g.Modes.Has(caps.Delete)) &&
			(p == "/" || strings.HasPrefix(g.Scope, p+"/")) {
			return g.Scope
		}
	}
	return ""
}

// mayChange reports whether the run may write or remove p itself.
func (s *execState) mayChange(p string) bool {
	return s.atLaunch.Check(caps.Request{Family: caps.FS, Mode: caps.Write, Name: p}).Allow ||
		s.atLaunch.Check(caps.Request{Family: caps.FS, Mode: caps.Delete, Name: p}).Allow
}
