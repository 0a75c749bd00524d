package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// errView is wrapped by an error about what a program is to see and cannot be
// shown, or kept from it.
var errView = errors.New("no view of the agent's files can be made")

// Lane implements [lane.Maker].
func (c Config) Lane(cfg lane.Config) (lane.Lane, error) {
	k := &container{cfg: cfg, own: c.orDefault()}
	e, err := findEngine(&k.own)
	if err != nil {
		return nil, err
	}
	k.engine = e
	return k, nil
}

func (*container) Name() string { return "container" }

// Check implements [lane.Lane] by making a container in which nothing runs.
func (k *container) Check(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.engine.fits(&k.own); err != nil {
		return err
	}
	if err := lane.PrepareProcess(); err != nil { // what the engine leaves comes to us, and is waited for
		return err
	}
	k.engine.endLeft(ctx, k.own.State)
	if err := k.prepare(); err != nil {
		return err
	}
	return k.trial(ctx)
}

// Controls implements [lane.Lane]: what the flags of the command line ask for, the
// trial had, or there would be no lane.
func (k *container) Controls() lane.Controls {
	var c lane.Controls
	for i := range c {
		c[i].Level = lane.Enforced
	}
	c[lane.Links] = lane.Label{
		Why: "an engine of containers has no broker that judges links", Remedy: `lane = "ns" or "bwrap"`,
	}
	return c
}

func (k *container) prepare() error {
	if k.state != nil {
		return nil
	}
	profile, err := seccompProfile(k.own.Seccomp)
	if err != nil {
		return err
	}
	id := k.cfg.ID
	if id == "" { // a lane that is only asked what it can do
		id = strconv.Itoa(os.Getpid())
	}
	s, err := makeState(k.own.State, id, map[string][]byte{
		"seccomp.json": profile, "containers.conf": nil, "mounts.conf": nil, nameFile: []byte(containerName(id)),
	})
	if err != nil {
		return &lane.UnsupportedError{Lane: "container", Why: err.Error(), Remedy: k.own.State +
			" must be a folder in which files can be made"}
	}
	if err := s.mountPoints(k.own.Tmpfs); err != nil {
		return errors.Join(err, s.remove())
	}
	k.state = s
	return nil
}

func containerName(id string) string { return "rlp-" + id }

func (k *container) open() error {
	if k.work != nil {
		return nil
	}
	if err := lane.PrepareProcess(); err != nil {
		return err
	}
	if err := k.prepare(); err != nil {
		return err
	}
	work, err := lane.MakeWorkFolder(k.cfg.Work)
	if err != nil {
		return err
	}
	k.work = work
	if os.Geteuid() == 0 && !k.engine.rootless { // programs are somebody else, and this is their folder
		uid, gid, _ := strings.Cut(k.own.User, ":")
		u, err1 := strconv.Atoi(uid)
		g, err2 := strconv.Atoi(gid)
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("reading the user %q: %w", k.own.User, err)
		}
		if err := work.Chown(u, g); err != nil {
			return fmt.Errorf("giving the working folder to user %s: %w", k.own.User, err)
		}
	}
	k.watcher, err = k.engine.watch(k.state, containerName(k.cfg.ID))
	return err
}

// Find implements [lane.Finder].
func (k *container) Find(written string, closed ...string) (lane.Found, error) {
	switch {
	case k.own.Rootfs != "":
		return findBelow(k.own.Rootfs, written, closed)
	case k.own.Image != "": // what is in it is not known before it runs
		if !filepath.IsAbs(written) || filepath.Clean(written) != written {
			return lane.Found{}, lane.ErrNotExist
		}
		if sandbox.IsIn(written, append([]string{"/proc", "/sys", "/dev"}, closed...)) {
			return lane.Found{}, lane.ErrClosed
		}
		return lane.Found{Named: written, File: written}, nil
	}
	return lane.Find(written, closed...)
}

// findBelow resolves a path as a container with that root does. Who may write
// the file out here, or what lies at its path, may replace the program.
func findBelow(root, written string, closed []string) (lane.Found, error) {
	if !filepath.IsAbs(written) || filepath.Clean(written) != written {
		return lane.Found{}, lane.ErrNotExist
	}
	dir, err := realBelow(root, filepath.Dir(written))
	if err != nil {
		return lane.Found{}, err
	}
	file, err := realBelow(root, written)
	if err != nil {
		return lane.Found{}, err
	}
	f := lane.Found{Named: filepath.Join(dir, filepath.Base(written)), File: file}
	f.Via = []string{root + f.Named, root + file, f.Named}
	for _, p := range []string{f.Named, f.File} {
		if sandbox.IsIn(p, append([]string{"/proc", "/sys", "/dev"}, closed...)) {
			return lane.Found{}, lane.ErrClosed
		}
	}
	return f, nil
}

// CanonicalBelow is a path without links, in a root; missing says that there is
// no such file, and the path is as it was written.
func CanonicalBelow(root, written string) (canonical string, missing bool, err error) {
	written = filepath.Clean(written)
	if canonical, err = realBelow(root, written); errors.Is(err, lane.ErrNotExist) {
		return written, true, nil
	}
	return canonical, false, err
}

// realBelow is a path without links, in a root.
func realBelow(root, p string) (string, error) {
	at, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("opening the root of programs: %w", err)
	}
	defer unix.Close(at)
	fd, err := unix.Openat2(at, p, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", lane.ErrNotExist, err)
	}
	defer unix.Close(fd)
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", p, err)
	}
	top, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(at))
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", root, err)
	}
	below, ok := strings.CutPrefix(real, top)
	if !ok || below != "" && below[0] != '/' {
		return "", lane.ErrNotExist
	}
	return "/" + strings.TrimPrefix(below, "/"), nil
}

// Close implements [lane.Lane].
func (k *container) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	if k.watcher != nil {
		errs = append(errs, k.watcher.dismiss())
	}
	if k.state != nil {
		k.reap(killTime)
		errs = append(errs, k.state.remove())
	}
	if k.work != nil {
		errs = append(errs, k.work.Close())
	}
	k.watcher, k.state, k.work = nil, nil, nil
	return errors.Join(errs...)
}

// trial makes a container with every control, and has nothing run in it.
func (k *container) trial(ctx context.Context) error {
	s, err := k.begin(containerName(k.cfg.ID), &lane.Command{
		Program: trialProgram, Timeout: engineTime, Folders: k.cfg.Folders,
		Leased: k.cfg.Leased,
	})
	if errors.Is(err, errView) {
		return &lane.UnsupportedError{Lane: "container", Why: err.Error()}
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, engineTime)
	defer cancel()
	cmd := k.engine.command(ctx, k.state, s.line()...)
	env, err := envFile(nil)
	if err != nil {
		return err
	}
	defer env.Close()
	var said bytes.Buffer
	cmd.Stderr, cmd.ExtraFiles = &said, []*os.File{env}
	err = cmd.Run()
	k.collect()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 127 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("trying a container: %w", err)
	}
	return &lane.UnsupportedError{
		Lane: "container", Why: filepath.Base(k.engine.path) + " makes no container here: " + lastLine(said.Bytes()),
		Remedy: "what it wants is in its own words; docs/exec.md says how to try it by hand",
	}
}
