package lane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// Native is the native lane of one run. It opens nothing before the first Run.
func Native(cfg Config) (Lane, error) {
	return &native{cfg: cfg, wake: -1}, nil
}

// Check implements [Lane]: what is missing shows when a program is started.
func (*native) Check(context.Context) error { return nil }

// Controls implements [Lane]. Programs run as the operator, in his own view of
// the machine.
func (n *native) Controls() Controls {
	c := all(BestEffort, "programs run as you do", `[exec] lane = "auto"`)
	c[Filesystem] = Label{Unsupported, "programs see your files", `[exec] lane = "auto"`}
	for _, kept := range []Control{Descriptors, WallTime, OutputCaps} {
		c[kept] = Label{Level: Enforced}
	}
	c[Links] = Label{Unsupported, "programs write your files", `[exec] lane = "auto"`}
	c[Memory], c[Pids] = BoundLabels()
	for _, bound := range []Control{Memory, Pids} {
		if c[bound].Level == Enforced { // whoever may make a group may leave it
			c[bound] = Label{BestEffort, "a program that runs as you may leave its control group", `[exec] lane = "auto"`}
		}
	}
	return c
}

// Run implements [Lane].
func (n *native) Run(ctx context.Context, c *Command) (*Result, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if n.outer == nil {
		if err := c.Plain(n.Name()); err != nil {
			return nil, err
		}
	}
	if err := n.open(); err != nil {
		return nil, err
	}
	if err := n.settle(); err != nil {
		return nil, err
	}
	program, err := pin(c.Program)
	if err != nil {
		return nil, err
	}
	defer program.close()
	dir, err := n.work.Handle(c.Dir)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	before, over, err := n.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer over()
	if err := n.keeps(); err != nil {
		return nil, err
	}
	starved := n.oomKills()
	ch, err := n.start(program, dir, c)
	if err != nil {
		return nil, errors.Join(err, n.sweep(before))
	}
	r, err := ch.watch(ctx, c)
	c.Pipes.Keep(ch.err.Output)
	if r != nil {
		r.OutOfMemory = n.oomKills() > starved
	}
	if n.leaving != nil {
		return r, err
	}
	return r, errors.Join(err, n.sweep(before), ch.close())
}

// open makes what every program of the run needs, once.
func (n *native) open() (err error) {
	if n.opened {
		return nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("opening the lane %s: %w", n.Name(), err), n.release())
		}
	}()
	if err := PrepareProcess(); err != nil {
		return err
	}
	if n.work, err = MakeWorkFolder(n.cfg.Work); err != nil {
		return err
	}
	if n.null, err = os.Open(os.DevNull); err != nil {
		return err
	}
	if n.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	n.groupsV1 = &groupsV1{}
	if !n.cfg.noGroup {
		n.newGroup()
		if !n.group.bounds() {
			n.groupsV1 = makeGroupsV1(n.cfg.ID, n.cfg.Bounds.OrDefault())
		}
	}
	give := harden
	if n.outer != nil { // it gives up more, and needs some of it until then
		give = func() error { return nil }
	}
	n.spawner = newSpawner(n.groupsV1.enter, give)
	n.buf = make([]byte, 64<<10)
	n.opened = true
	return nil
}

// PrepareProcess is what concerns rlp as a whole: descriptors that it inherited
// stay its own, whoever loses his parent comes to it, and no memory of a program is
// dumped, nor of rlp.
func PrepareProcess() error {
	if err := keepDescriptors(); err != nil {
		return fmt.Errorf("keeping inherited descriptors: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	return noCore()
}

// noCore keeps the memory of this process and of what it starts out of core
// dumps. A limit of 0 would not: it is for files, and a dump that is piped to a
// program (kernel.core_pattern) has none but 1. Nobody raises it, programs do not
// set it (see [processRules]), and where it was 0 for good before and cannot be 1,
// a dump has no memory in it: that holds after executing a file, which being no
// longer dumpable (PR_SET_DUMPABLE) does not.
func noCore() error {
	err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: sandbox.CoreLimit, Max: sandbox.CoreLimit})
	if errors.Is(err, unix.EPERM) {
		err = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	}
	if err != nil {
		return fmt.Errorf("bounding core dumps: %w", err)
	}
	err = os.WriteFile("/proc/self/coredump_filter", []byte("0"), 0) // a kernel without core dumps has no such file
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// keepDescriptors marks every descriptor but the first three as one that no
// program gets. What rlp opens is marked when it is opened.
func keepDescriptors() error {
	err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if !sandbox.IsOf(err, unix.ENOSYS, unix.EINVAL) { // before Linux 5.11
		return err
	}
	return keepListed()
}

func keepListed() error {
	entries, err := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// Close implements [Lane].
func (n *native) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.opened {
		return nil
	}
	n.opened = false
	return n.release()
}

func (n *native) release() error {
	errs := []error{n.settle()}
	if n.spawner != nil {
		close(n.spawner.orders)
	}
	if n.group != nil {
		errs = append(errs, n.group.close())
	}
	if n.groupsV1 != nil {
		errs = append(errs, n.groupsV1.close())
	}
	if n.wake >= 0 {
		errs = append(errs, unix.Close(n.wake))
	}
	if n.null != nil {
		errs = append(errs, n.null.Close())
	}
	if n.work != nil {
		errs = append(errs, n.work.Close())
	}
	n.spawner, n.group, n.groupsV1, n.null, n.work, n.wake = nil, nil, nil, nil, nil, -1
	return errors.Join(errs...)
}

// keeps refuses to start a program whose bounds were asked for, in a lane that
// promises to keep them, where no group does: one that could be made when the
// lane was tried may not be there now.
func (n *native) keeps() error {
	asked := n.cfg.Bounds
	if n.outer == nil || (asked.Memory == 0 || n.boundsMemory()) && (asked.Pids == 0 || n.boundsPids() || countsOwn()) {
		return nil
	}
	return &UnsupportedError{Lane: n.Name(), Why: "no control group that bounds memory and processes can be made any more"}
}
