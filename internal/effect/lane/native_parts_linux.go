package lane

import (
	"os"
	"sync"
)

// native runs programs as the operator's own processes. It takes from them what
// can be taken without privileges and without a start of their own: see harden.
// They still see the operator's files. The lanes with sandboxes are built on it.
type native struct {
	cfg   Config
	outer outer // nil: programs are started by rlp itself

	mu       sync.Mutex // one program at a time
	opened   bool
	spawner  *spawner
	work     *WorkFolder
	group    *group // nil where there is none to be had
	groups   int    // made so far
	groupsV1 *groupsV1
	leader   int    // what was started for a sandbox, until it is swept
	leaving  *child // what stood before the last program, and ends by itself
	wake     int    // an eventfd: ctx has ended
	null     *os.File
	buf      []byte

	unjudged string // why no broker judges links; "": one does
}

// A child is one program that was started, and our ends of its streams.
type child struct {
	lane  *native
	pid   int
	pidfd int
	ended bool // and reaped
	said  int  // what stands between rlp and the program reports here; -1: nothing does
	net   int  // its network is handed over here; -1: it has none
	words []byte
	asked func(file string, written bool) bool
	used  func(how byte, there bool, path string)
	mute  bool // it has said all
	// refusals is told what was refused while the program runs; nil: nobody is.
	refusals func(what string)
	code     int
	over     bool // nothing of the program is left: what stood before it ends by itself

	in       int // -1: closed
	pending  []byte
	out, err stream
	streams  [3]uintptr
	relay    *relay // its streams, where they pass through: out is none then, and err is not the program's
}

// A stream is what a child writes: what is kept is bounded, all of it is read.
type stream struct {
	fd int // -1: at its end
	Keeper
}

// An outer is what stands between rlp and its programs, in the lanes that have
// something: it is started instead of a program, and given a [plan].
type outer interface {
	name() string
	// order is how c is started: these files are the program's streams. What it
	// returns beside is to be closed when the order was carried out.
	order(ch *child, p *pinned, c *Command, files []uintptr) (*order, []*os.File, error)
	// started is what an error of the order's means.
	started(err error) error
}

// A group is a control group of its own for the programs of a run: what is
// started in it stays in it, whatever sessions it makes, and ends with it.
type group struct {
	path   string
	dir    int // a handle of it, locked as long as its maker lives
	events int // cgroup.events

	memory, pids bool // it bounds them
}

// A groupsV1 is what bounds memory and processes of programs where the first
// version of control groups has the controllers: a group in each hierarchy,
// below our own. Threads are put into it one by one, and what a thread starts is
// in the thread's group from its first instruction, so that nothing is started
// outside and moved later.
type groupsV1 struct {
	memory, pids string // the groups; "" where none is to be had
	locks        []int
}

// Name implements [Lane].
func (n *native) Name() string {
	if n.outer != nil {
		return n.outer.name()
	}
	return "native"
}
