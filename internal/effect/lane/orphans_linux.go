package lane

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// Orphans come to the process as a whole, in which other runs have programs and
// other parts have children. What one lane ends is only what its own program is
// an ancestor of, and that is told by what no process can put off:
//
//   - programs of a sandbox are in a process namespace, which ends with its first
//     process, and that one is in the process group of what was started;
//   - programs of the lane native are in the Landlock domain of the thread that
//     started them, and that thread can send a signal to nobody outside of it;
//   - where Landlock does not do that (before Linux 6.12), programs of the lane
//     native run one at a time in the whole process, and what is not one of them
//     is known by its session, or was there before.

// A processTable is what lanes of one process must know of one another, whoever made
// them: its children are not a lane's, or a run's, but the process's.
type processTable struct {
	// alone is held while a program runs whose orphans cannot be told from
	// those of another.
	alone chan struct{}

	// leaders are what was started for programs in sandboxes. Whoever starts one
	// holds the lock until it is known.
	sync.Mutex
	leaders map[int]bool
}

// ownTable is the table of this process: like its children, one.
var ownTable = sync.OnceValue(func() *processTable {
	return &processTable{alone: make(chan struct{}, 1), leaders: map[int]bool{}}
})

// scoped reports whether the kernel itself tells which orphans are this lane's.
func (n *native) scoped() bool { return !n.cfg.noScope && sandbox.Landlock() >= sandbox.LandlockScope }

// alone implements [waiter].
func (n *native) alone() bool { return n.outer == nil && !n.scoped() }

// turn waits until a program of this lane may run. before are the children that
// are none of its own, where that has to be known.
func (n *native) turn(ctx context.Context) (before map[int]bool, over func(), err error) {
	if n.outer != nil || n.scoped() {
		return nil, func() {}, nil
	}
	select {
	case ownTable().alone <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	over = func() { <-ownTable().alone }
	if before, err = others(); err != nil {
		over()
		return nil, nil, err
	}
	return before, over, nil
}

func others() (map[int]bool, error) {
	known := map[int]bool{}
	if !hasChildren() {
		return known, nil
	}
	list, err := Children()
	for _, pid := range list {
		known[pid] = true
	}
	return known, err
}

// endOrphans ends what this lane's program has left to rlp.
func (n *native) endOrphans(before map[int]bool) error {
	switch {
	case n.outer != nil:
		err := endLed(n.leader)
		table := ownTable()
		table.Lock()
		defer table.Unlock()
		delete(table.leaders, n.leader)
		n.leader = 0
		return err
	case before == nil:
		return endOrphans(func(pid int) bool { return n.spawner.kill(pid) == nil })
	}
	own, err := unix.Getsid(0)
	if err != nil {
		return err
	}
	table := ownTable()
	return endOrphans(func(pid int) bool {
		table.Lock() // and what is being started is known, or not there
		defer table.Unlock()
		if before[pid] || !hardened(pid) {
			return false
		}
		// A program begins a session, and nobody joins another's.
		session, err := unix.Getsid(pid)
		if err != nil || session == own || table.leaders[session] {
			return false
		}
		_ = unix.Kill(pid, unix.SIGKILL)
		return true
	})
}

// endLed ends and takes in what is left of the process group of a leader that
// has ended: the first process of its namespace, when the leader was killed.
func endLed(leader int) error {
	if leader <= 0 {
		return nil
	}
	for until := time.Now().Add(killTime); ; {
		pid, err := unix.Wait4(-leader, nil, unix.WNOHANG|unix.WALL, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case pid > 0:
			continue
		case time.Now().After(until):
			return ErrStray
		}
		_ = unix.Kill(-leader, unix.SIGKILL)
		pause()
	}
}

func (n *native) launch(o *order) (int, error) {
	if n.outer == nil {
		return n.spawner.do(o)
	}
	table := ownTable()
	table.Lock()
	defer table.Unlock()
	pid, err := n.spawner.do(o)
	if err != nil {
		return 0, err
	}
	n.leader, table.leaders[pid] = pid, true
	return pid, nil
}

// hardened reports whether a process may come from the spawner: it has no new
// privileges, which nobody who has lost them gets back. Where this process has
// none itself, everybody may.
func hardened(pid int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil || !bytes.Contains(status, []byte("NoNewPrivs:\t0")) {
		return true
	}
	own, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return err != nil || own != 0
}
