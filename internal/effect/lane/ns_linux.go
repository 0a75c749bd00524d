package lane

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// ns runs each program in namespaces of its own, made by rlp itself: it starts
// itself again in them, and that one builds a root folder with nothing in it but
// system programs and what the agent holds, gives up everything, and starts the
// program.
type ns struct{ *native }

func newNS(cfg Config) (Lane, error) {
	if len(cfg.Self) == 0 {
		return nil, &UnsupportedError{Lane: "ns", Why: "rlp does not know where its own program is"}
	}
	n := &native{cfg: cfg, wake: -1}
	n.outer = &namespaces{n}
	return &ns{n}, nil
}

// namespaces is the [outer] of the lane ns.
type namespaces struct{ lane *native }

func (*namespaces) name() string { return "ns" }

func (o *namespaces) order(ch *child, p *pinned, c *Command, files []uintptr) (*order, []*os.File, error) {
	plan, err := o.lane.plan(ch, p, c)
	if err != nil {
		return nil, nil, err
	}
	files, theirs, err := ch.wired(plan, files)
	if err != nil {
		return nil, nil, err
	}
	self := o.lane.cfg.Self
	return &order{path: self[0], argv: self[1:], attr: &syscall.ProcAttr{
		Env: confinedEnv(), Files: files,
		Sys: ownNamespaces(plan),
	}}, theirs, nil
}

// ownNamespaces are all there are but the one of clocks. What builds the root, and
// the network where one is asked for, keeps the power to do so over its start, in
// them alone.
func ownNamespaces(p *sandbox.Plan) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWNET |
			unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		UidMappings: mapped(os.Geteuid()), GidMappings: mapped(os.Getegid()),
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE},
	}
	if p.Network {
		attr.AmbientCaps = append(attr.AmbientCaps, sandbox.NetworkCapabilities()...)
	}
	return attr
}

func (o *namespaces) started(err error) error {
	if err == nil {
		return nil
	}
	return &UnsupportedError{
		Lane: "ns", Why: "rlp cannot start itself in namespaces of its own: " + err.Error(),
		Remedy: nsRemedy(err),
	}
}

// nsRemedy is what an operator can do about a system that refuses namespaces.
func nsRemedy(err error) string {
	off := func(name string) bool {
		text, err := os.ReadFile("/proc/sys/" + name)
		return err == nil && strings.TrimSpace(string(text)) == "0"
	}
	on := func(name string) bool {
		text, err := os.ReadFile("/proc/sys/" + name)
		return err == nil && strings.TrimSpace(string(text)) == "1"
	}
	switch {
	case off("user/max_user_namespaces"):
		return "sysctl user.max_user_namespaces=15000"
	case off("kernel/unprivileged_userns_clone"):
		return "sysctl kernel.unprivileged_userns_clone=1"
	case on("kernel/apparmor_restrict_unprivileged_userns"):
		return "an AppArmor profile for rlp that allows userns, or sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSPC):
		return "a container must be allowed user namespaces, such as podman run --security-opt seccomp=unconfined"
	}
	return ""
}

// Check implements [Lane]: it does all that is done for a program but start one.
func (l *ns) Check(ctx context.Context) error {
	self := l.cfg.Self
	return l.prove(ctx, func(p *sandbox.Plan) (*order, []*os.File, error) {
		return &order{path: self[0], argv: self[1:], attr: &syscall.ProcAttr{Sys: ownNamespaces(p)}}, nil, nil
	})
}

// Controls implements [Lane].
func (l *ns) Controls() Controls { return l.rooted() }

// rooted are the labels of lanes with a root and namespaces of their own.
func (n *native) rooted() Controls {
	c := all(Enforced, "", "")
	if n.unjudged != "" {
		c[Links] = Label{Why: n.unjudged}
	}
	c[Memory], c[Pids] = BoundLabels()
	if countsOwn() {
		c[Pids] = Label{Level: Enforced}
	}
	return c
}

// countsOwn reports whether the kernel counts the processes of a user namespace
// by itself, so that a limit bounds those of a program: since Linux 5.14, and not
// those of root.
func countsOwn() bool {
	if os.Geteuid() == 0 {
		return false
	}
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	major, rest, _ := strings.Cut(unix.ByteSliceToString(u.Release[:]), ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err1 := strconv.Atoi(major)
	n, err2 := strconv.Atoi(minor)
	return err1 == nil && err2 == nil && (m > 5 || m == 5 && n >= 14)
}

// bwrapRemedy is what an operator can do about what bubblewrap says.
func bwrapRemedy(says string) string {
	if strings.Contains(says, "Unknown option") {
		return "bubblewrap 0.8 or newer"
	}
	return nsRemedy(unix.EPERM)
}
