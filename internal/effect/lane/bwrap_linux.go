package lane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// bwrap is the lane in which bubblewrap builds what programs see. Inside it rlp
// is started once more, as its first process: it gives up what bubblewrap leaves,
// and starts the program.
type bwrap struct {
	*native
	path string
}

func newBwrap(cfg Config) (Lane, error) {
	if len(cfg.Self) == 0 {
		return nil, &UnsupportedError{Lane: "bwrap", Why: "rlp does not know where its own program is"}
	}
	n := &native{cfg: cfg, wake: -1}
	l := &bwrap{native: n}
	n.outer = l
	for _, p := range []string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"} {
		if IsTool(p) {
			l.path = p
			return l, nil
		}
	}
	return nil, &UnsupportedError{
		Lane: "bwrap", Why: "bubblewrap is not installed, or others may write it",
		Remedy: "apt-get install bubblewrap",
	}
}

func (*bwrap) name() string { return "bwrap" }

func (l *bwrap) order(ch *child, p *pinned, c *Command, files []uintptr) (*order, []*os.File, error) {
	plan, err := l.plan(ch, p, c)
	if err != nil {
		return nil, nil, err
	}
	plan.Inside = true
	files, theirs, err := ch.wired(plan, files)
	if err != nil {
		return nil, nil, err
	}
	argv, more, err := l.command(plan, len(files))
	if err != nil {
		closeAll(theirs)
		return nil, nil, err
	}
	for _, f := range more {
		files = append(files, f.Fd())
	}
	return &order{path: l.path, argv: argv, attr: &syscall.ProcAttr{
		Env: confinedEnv(), Files: files,
		Sys: &syscall.SysProcAttr{},
	}}, append(theirs, more...), nil
}

// command is what bubblewrap is told. The files follow those that it has
// already, of which there are next.
func (l *bwrap) command(p *sandbox.Plan, next int) ([]string, []*os.File, error) {
	self, err := os.Open(l.cfg.Self[0])
	if err != nil {
		return nil, nil, fmt.Errorf("opening rlp's own program: %w", err)
	}
	files := []*os.File{self}
	id := strconv.Itoa(sandbox.InsideID)
	argv := []string{
		"bwrap", "--as-pid-1", "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts",
		"--unshare-cgroup-try",
		"--uid", id, "--gid", id, "--die-with-parent",
		"--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP",
		"--cap-add", "CAP_SYS_RESOURCE", // until [plan.complete] is done
	}
	if p.Network {
		argv = append(argv, "--cap-add", "CAP_NET_ADMIN", "--cap-add", "CAP_NET_BIND_SERVICE", "--cap-add", "CAP_NET_RAW")
	}
	// Before anything else is there: none of these is written through to a file of
	// the operator's, who sees his own in their place where the agent holds it.
	for name, text := range p.OwnEtc() {
		f, err := inMemory(name, text)
		if err != nil {
			closeAll(files)
			return nil, nil, err
		}
		argv = append(argv, "--perms", "0444", "--file", strconv.Itoa(next+len(files)), "/etc/"+name)
		files = append(files, f)
	}
	var last []string
	for _, s := range p.Mounts {
		args, after := bwrapArgs(s, p)
		argv, last = append(argv, args...), append(last, after...)
	}
	argv = append(append(argv, last...), "--remount-ro", "/", "--chdir", "/", "--", "/proc/self/fd/"+strconv.Itoa(next))
	return append(argv, l.cfg.Self[2:]...), files, nil
}

// bwrapArgs are a mount in bubblewrap's words, and what comes after all others. It
// follows links where they are; what is no link now was none when it was decided.
func bwrapArgs(s sandbox.Mount, p *sandbox.Plan) (args, after []string) {
	size := strconv.FormatInt(p.Scratch, 10)
	switch s.Kind {
	case sandbox.Private:
		return []string{"--perms", "1777", "--size", size, "--tmpfs", s.Path}, nil
	case sandbox.Procs:
		return []string{"--proc", s.Path}, nil
	case sandbox.Devices:
		args = []string{"--size", sandbox.Small, "--tmpfs", s.Path}
		for _, name := range p.DeviceNames() {
			args = append(args, "--dev-bind-try", "/dev/"+name, "/dev/"+name)
		}
		for name, to := range p.DeviceLinks() {
			args = append(args, "--symlink", to, "/dev/"+name)
		}
		if p.Live {
			args = append(args, "--dir", sandbox.TerminalsAt)
		}
		return args, []string{"--remount-ro", s.Path}
	}
	if s.Path == "/" && s.Parted { // the root is in memory as it is
		return nil, nil
	}
	c := sandbox.MountSource{Mount: s, Tree: -1, Folder: true}
	fd, err := c.Look()
	if err != nil { // what is not there is not shown
		return nil, nil
	}
	_ = unix.Close(fd)
	switch {
	case c.Link != "":
		return []string{"--symlink", c.Link, s.Path}, nil
	case s.Kind == sandbox.Nothing && c.Folder:
		return []string{"--size", sandbox.Small, "--tmpfs", s.Path}, []string{"--remount-ro", s.Path}
	case s.Kind == sandbox.Nothing:
		return []string{"--ro-bind", "/dev/null", s.Path}, nil
	case s.Access == ReadWrite:
		return []string{"--bind", s.Path, s.Path}, nil
	}
	return []string{"--ro-bind", s.Path, s.Path}, nil
}

func inMemory(name, text string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("keeping %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return nil, errors.Join(fmt.Errorf("keeping %s: %w", name, err), f.Close())
	}
	return f, nil
}

func (l *bwrap) started(err error) error {
	if err == nil {
		return nil
	}
	return &UnsupportedError{Lane: "bwrap", Why: "bubblewrap cannot be started: " + err.Error()}
}

// Check implements [Lane].
func (l *bwrap) Check(ctx context.Context) error {
	return l.prove(ctx, func(p *sandbox.Plan) (*order, []*os.File, error) {
		p.Inside = true
		argv, files, err := l.command(p, sandbox.ReportFile+1)
		return &order{path: l.path, argv: argv, attr: &syscall.ProcAttr{}}, files, err
	})
}

// Controls implements [Lane].
func (l *bwrap) Controls() Controls { return l.rooted() }
