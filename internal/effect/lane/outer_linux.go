package lane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// plan is what a confined rlp shall do for c, p being its program.
func (n *native) plan(ch *child, p *pinned, c *Command) (*sandbox.Plan, error) {
	var st unix.Stat_t
	if err := unix.Fstat(p.fd, &st); err != nil {
		return nil, fmt.Errorf("looking at the program: %w", err)
	}
	dir, err := n.work.Within(c.Dir)
	if err != nil {
		return nil, err
	}
	if c.Cwd != "" {
		dir = c.Cwd
	}
	s := sandbox.ViewSpec{
		Folders: c.Folders, Leased: n.staying(c.Leased), Work: n.cfg.Work, Program: c.Program,
		Entries: sandbox.Entries, Protected: c.Protected,
	}
	executes := c.executables()
	s.Programs = shown(executes)
	if s.Mounts, err = MountsWithin(c.Folders); err != nil {
		return nil, err
	}
	v, err := guardable(&s)
	if err != nil {
		return nil, Unkeepable(n.Name(), err.Error())
	}
	pl := &sandbox.Plan{
		Mounts: v.Mounts, Kept: v.Kept, Work: n.cfg.Work, Dir: dir,
		File: c.Program, Dev: st.Dev, Ino: st.Ino, SHA256: c.SHA256, Script: p.script, Argv: c.Argv, Env: c.Env,
		Scratch: scratchBytes, Untrusted: n.cfg.Untrusted, Protected: c.Protected,
		Executes: executes, Counts: quarters(),
	}
	if c.Network != nil {
		pl.Network, pl.Ports, pl.Inward = true, c.Network.Ports, c.Network.Inward
	}
	if r := ch.relay; r != nil {
		pl.Live, pl.Terminal, pl.Apart = true, r.terminal, r.theirs[2] != nil
	}
	n.judging(pl, &s)
	if c.Network != nil {
		n.sockets(pl, &s, v)
	}
	ch.asking(pl, c)
	n.bound(pl)
	return pl, nil
}

// quarters are what a program has of what the operator's user has in all: the rest is
// the operator's, and for other programs.
func quarters() []int64 {
	var list []int64
	for _, name := range sandbox.Counted() {
		text, err := os.ReadFile("/proc/sys/user/" + name)
		most, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || bad != nil {
			break // an older kernel has none of those that follow
		}
		list = append(list, most/4)
	}
	return list
}

// staying are leased paths, and files that are called untrusted: what Landlock leaves
// to programs without asking a broker is to name a file anew within its folder.
func (n *native) staying(leased []string) []string {
	list := slices.Clone(leased)
	for _, p := range n.cfg.Untrusted {
		var st unix.Stat_t
		if unix.Lstat(p, &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			list = append(list, p)
		}
	}
	return list
}

// guardable is the spec's view, where a broker can keep what is to be kept: it
// reads the paths that programs name out of their memory, which Yama can forbid.
func guardable(s *sandbox.ViewSpec) (sandbox.View, error) {
	v, err := s.View()
	if err != nil || len(v.Kept) == 0 && !v.IsGuarded() {
		return v, err
	}
	if why := closedMemory(); why != "" {
		what := "a protected name"
		if len(v.Kept) > 0 {
			what = v.Kept[0].Path
		}
		return v, fmt.Errorf("%s: %w: %s", what, sandbox.ErrNotKept, why)
	}
	return v, nil
}

func closedMemory() string {
	scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if text := strings.TrimSpace(string(scope)); err == nil && (text == "2" || text == "3") {
		return "the sysctl kernel.yama.ptrace_scope is " + text + ", and must be 0 or 1"
	}
	return ""
}

// judging has links judged, where that is to be had here.
func (n *native) judging(p *sandbox.Plan, s *sandbox.ViewSpec) {
	if p.Links = n.unjudged == ""; p.Links {
		p.Held = s.Held(n.cfg.Untrusted)
	}
}

// sockets says where programs make sockets of Unix: nowhere, where a broker would have
// to connect them and none can. Nobody tells there which others are refused.
func (n *native) sockets(p *sandbox.Plan, s *sandbox.ViewSpec, v sandbox.View) {
	if p.Sockets, p.Dials = s.Sockets(v); p.Dials && !p.Links {
		p.Sockets, p.Dials = nil, false
	}
	p.Told = p.Links
}

// scratchBytes is what a private /tmp takes.
const scratchBytes = 64 << 20

// bound says what the confined rlp must bound itself, no group doing it.
func (n *native) bound(p *sandbox.Plan) {
	most := n.cfg.Bounds.OrDefault()
	if !n.boundsMemory() {
		p.Memory = most.Memory
	}
	if !n.boundsPids() {
		p.Pids = most.Pids + ownThreads
	}
}

// wired makes what a confined rlp is given beside the program's streams: the
// plan, and where it reports to.
func (ch *child) wired(p *sandbox.Plan, files []uintptr) ([]uintptr, []*os.File, error) {
	fd, err := unix.MemfdCreate("plan", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("keeping the plan: %w", err)
	}
	plan := os.NewFile(uintptr(fd), "plan")
	if _, err := plan.Write(p.Encode()); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("keeping the plan: %w", err), plan.Close())
	}
	talk, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("making a socket: %w", err), plan.Close())
	}
	ch.said = talk[0]
	report := os.NewFile(uintptr(talk[1]), "report")
	files, theirs := append(files, plan.Fd(), report.Fd()), []*os.File{plan, report}
	if !p.Network && !p.Live || p.Proof {
		return files, theirs, nil
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		closeAll(theirs)
		return nil, nil, fmt.Errorf("making a socket: %w", err)
	}
	ch.net = pair[0]
	if err := unix.SetsockoptTimeval(ch.net, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: handOver}); err != nil {
		closeAll(append(theirs, os.NewFile(uintptr(pair[1]), "socket")))
		return nil, nil, fmt.Errorf("making a socket: %w", err)
	}
	socket := os.NewFile(uintptr(pair[1]), "socket")
	files, theirs = append(files, socket.Fd()), append(theirs, socket)
	if p.Live {
		files = append(files, ch.streams[:]...)
	}
	return files, theirs, nil
}

// refused is why a confined rlp started nothing, nil when it did. Whoever was
// killed before he could begin says nothing.
func (ch *child) refused(status unix.WaitStatus) error {
	if ch.said < 0 {
		return nil
	}
	ch.listen()
	lane := ch.lane.Name()
	begun, err := reported(lane, string(ch.words))
	if err != nil || begun || status.Signaled() {
		return err
	}
	says := strings.TrimSpace(string(ch.err.Data[:min(len(ch.err.Data), 500)]))
	if says == "" {
		says = fmt.Sprintf("exit status %d", status.ExitStatus())
	}
	return &UnsupportedError{Lane: lane, Why: "it did not come to start a program: " + says, Remedy: remedyFor(lane, says)}
}

func remedyFor(lane, says string) string {
	if lane == "bwrap" {
		return bwrapRemedy(says)
	}
	return ""
}

// prove tries a lane: what o says does all that is done for a program, but
// starts none. Where links cannot be judged the lane is one without that.
func (n *native) prove(ctx context.Context, order func(p *sandbox.Plan) (*order, []*os.File, error)) error {
	if n.unjudged = closedMemory(); n.cfg.noLinks {
		n.unjudged = "a test says so"
	}
	err := n.try(ctx, order)
	var u *UnsupportedError
	if errors.As(err, &u) && u.links {
		n.unjudged = u.Why
		err = n.try(ctx, order)
	}
	return err
}

func (n *native) try(ctx context.Context, order func(p *sandbox.Plan) (*order, []*os.File, error)) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	ch := &child{lane: n, pidfd: -1, said: -1, net: -1, in: -1, out: stream{fd: -1}, err: stream{-1, Keeper{Max: 4096}}}
	defer ch.close()
	s := sandbox.ViewSpec{
		Folders: n.cfg.Folders, Leased: n.staying(n.cfg.Leased), Entries: sandbox.Entries, Protected: n.cfg.Protected,
	}
	var err error
	if s.Mounts, err = MountsWithin(s.Folders); err != nil {
		return err
	}
	v, err := guardable(&s)
	if err != nil {
		return Unkeepable(n.Name(), err.Error())
	}
	p := &sandbox.Plan{
		Proof: true, Network: n.cfg.Network, Mounts: v.Mounts, Kept: v.Kept, Scratch: scratchBytes,
	}
	if n.cfg.Executes {
		p.Executes = new(Executables)
	}
	n.judging(p, &s)
	o, files, err := order(p)
	if err != nil {
		return err
	}
	defer closeAll(files)
	_, theirs, err := ch.wired(p, nil)
	if err != nil {
		return err
	}
	defer closeAll(theirs)
	var says strings.Builder
	cmd := exec.CommandContext(ctx, o.path)
	cmd.Args, cmd.Env, cmd.Stderr, cmd.SysProcAttr = o.argv, confinedEnv(), &says, &syscall.SysProcAttr{}
	if o.attr.Sys != nil {
		cmd.SysProcAttr = o.attr.Sys
	}
	cmd.SysProcAttr.Setpgid = true // by its group is found what it leaves
	cmd.ExtraFiles = append(theirs, files...)
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return n.outer.started(err)
	}
	ch.err.Data = []byte(says.String())
	return errors.Join(ch.refused(unix.WaitStatus(cmd.ProcessState.Sys().(syscall.WaitStatus))), endLed(cmd.Process.Pid))
}

// checkTime is how long a try of a lane may take.
const checkTime = 10 * time.Second

// mapped is the one user and group that there is in a user namespace: ours,
// under a number that is nobody's.
func mapped(id int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: sandbox.InsideID, HostID: id, Size: 1}}
}

// reported is what a report means to the lane, and whether there was any.
func reported(lane, text string) (begun bool, err error) {
	text, begun = strings.CutPrefix(text, sandbox.Beginning)
	kind, why, any := strings.Cut(text, "\n")
	switch {
	case !any:
		return begun, nil
	case kind == "big":
		return begun, ErrTooBig
	case kind == "program":
		return begun, fmt.Errorf("%w: %s", ErrNotProgram, why)
	case kind == "mount":
		return begun, Unkeepable(lane, why)
	case kind == "links":
		return begun, &UnsupportedError{Lane: lane, Why: why, links: true}
	}
	return begun, &UnsupportedError{Lane: lane, Why: why}
}

// Unkeepable says what a lane cannot keep from programs.
func Unkeepable(lane, why string) error {
	return &UnsupportedError{
		Lane: lane, Why: why,
		Remedy: "take the folder in which it lies from the agent, or grant the entries that it may have one by one",
	}
}
