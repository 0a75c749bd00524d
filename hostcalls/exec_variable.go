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
func (h *Host) variable(holds caps.Set, v envVar) string {
	f := environ.FormOf(v.name)
	switch {
	case f != nil && f.Takes(v.value), h.isHandle(v.value):
		return ""
	case environ.IsPath(v.value):
		return h.leadsAstray(holds, v.value)
	case f != nil:
		return "takes " + f.Says + ", a secret's handle alone, or one absolute path"
	}
	return "is no variable of which rlp knows that no program runs its value: write a secret's handle alone, or one " +
		"absolute path " +
		"(of letters, digits and _ . + -, without .. and a slash at its end) of data that the agent may not write; give " +
		"anything else as an argument, or leave it out"
}

// isHandle reports whether value is what begins like a handle, and nothing else:
// it is given no other value than a secret's.
func (h *Host) isHandle(value string) bool {
	if h.cfg.Secrets == nil {
		return false
	}
	words := h.cfg.Secrets.Named(value)
	return len(words) == 1 && words[0] == value
}

// leadsAstray says why a program is not given the path: it is shown something else
// there, somebody can have it run what lies there, or the agent may write it.
func (h *Host) leadsAstray(holds caps.Set, written string) string {
	shown := func(p string) bool {
		return p == nullDevice || h.cfg.Exec.Shows(p) || holds.Check(caps.Request{
			Family: caps.FS, Mode: caps.Read,
			Name: p,
		}).Allow
	}
	unseen := written + " is nothing that the program is shown; name data in /usr/share, or have the operator grant " +
		"reading it (fs)"
	if !shown(written) {
		return unseen // and nothing is said of what lies there
	}
	leads, err := h.cfg.Exec.Leads(written)
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
		if scope := h.mayWrite(p); scope != "" {
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
func (h *Host) mayWrite(p string) string {
	set := h.exec.atLaunch
	for _, mode := range []caps.Mode{caps.Write, caps.Delete} {
		if set.Check(caps.Request{Family: caps.FS, Mode: mode, Name: p}).Allow {
			return p
		}
	}
	for _, g := range set.Grants() {
		if g.Family == caps.FS && (g.Modes.Has(caps.Write) || g.Modes.Has(caps.Delete)) &&
			(p == "/" || strings.HasPrefix(g.Scope, p+"/")) {
			return g.Scope
		}
	}
	return ""
}
