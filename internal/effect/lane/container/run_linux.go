package container

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// Run implements [lane.Lane].
func (k *container) Run(ctx context.Context, c *lane.Command) (*lane.Result, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := cmp.Or(ctx.Err(), c.Plain(k.Name())); err != nil {
		return nil, err
	}
	if err := k.open(); err != nil {
		return nil, fmt.Errorf("opening the lane container: %w", err)
	}
	if err := k.look(c); err != nil {
		return nil, err
	}
	s, err := k.begin(containerName(k.cfg.ID), c)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"pid", "conmon"} {
		if err := os.Remove(k.state.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("preparing a container: %w", err)
		}
	}
	return k.serve(ctx, s, c)
}

// look refuses what is no program, and what is no folder for one.
func (k *container) look(c *lane.Command) error {
	dir, err := k.work.Handle(c.Dir)
	if err != nil {
		return err
	}
	_ = unix.Close(dir)
	if k.own.Image != "" || k.own.Rootfs != "" {
		return nil
	}
	return lane.CheckProgram(c.Program)
}

func (k *container) begin(name string, c *lane.Command) (*start, error) {
	s := &start{
		engine: k.engine, cfg: &k.own, bounds: k.cfg.Bounds.OrDefault(), name: name, label: "dev.runloop.rlp=" + k.cfg.ID,
		state:   k.state,
		workdir: "/", lifetime: int64(c.Timeout/time.Second) + 30, stdin: len(c.Stdin) > 0 || c.Pipes != nil,
		program: c.Program,
	}
	sc := &sandbox.ViewSpec{Folders: c.Folders, Leased: c.Leased, Entries: sandbox.Entries}
	if k.work != nil {
		rel, err := k.work.Within(c.Dir)
		if err != nil {
			return nil, err
		}
		if sc.Mounts, err = lane.MountsWithin(c.Folders); err != nil {
			return nil, err
		}
		sc.Work, s.workdir = k.cfg.Work, filepath.Join(k.cfg.Work, rel)
	}
	if len(c.Argv) > 0 {
		s.args = c.Argv[1:]
		if name := c.Argv[0]; k.own.Image != "" || k.own.Rootfs != "" || isHost(name) {
			s.program = name // by which a program of many names knows what it is
		}
	}
	if k.own.Image == "" && k.own.Rootfs == "" && c.Program != trialProgram {
		sc.Program = c.Program
	}
	return s, s.view(sc, exists)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// serve runs the client of the engine until the program has ended, or must.
func (k *container) serve(ctx context.Context, s *start, c *lane.Command) (*lane.Result, error) {
	env, err := envFile(c.Env)
	if err != nil {
		return nil, err
	}
	defer env.Close()
	out, errs := &lane.Keeper{Max: c.MaxOutput}, &lane.Keeper{Max: c.MaxOutput}
	cmd := k.engine.command(context.WithoutCancel(ctx), k.state, s.line()...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, errs, []*os.File{env}
	switch {
	case c.Pipes != nil:
		cmd.Stdin, cmd.Stdout = c.Pipes.Stdin, c.Pipes.Stdout
	case s.stdin:
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	ended, err := tied(cmd)
	c.Pipes.Close() // or its end would not show
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", k.engine.path, err)
	}
	killed, err := k.await(ctx, s, cmd, ended, c.Timeout)
	k.collect()
	c.Pipes.Keep(errs.Output)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	r := &lane.Result{ExitCode: cmd.ProcessState.ExitCode(), TimedOut: killed, Stdout: out.Output, Stderr: errs.Output}
	if killed {
		r.ExitCode = 128 + int(unix.SIGKILL)
		return r, nil
	}
	return r, k.began(r)
}

// tied starts a client that is told to end when rlp does. It is not killed: it
// ends when no container is half made, which nobody could take away. What is
// told with the end of its parent is told with the end of the thread that
// started it, which therefore waits.
func tied(cmd *exec.Cmd) (ended chan error, err error) {
	cmd.SysProcAttr.Pdeathsig = unix.SIGTERM
	started := make(chan error, 1)
	ended = make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return ended, <-started
}

// await waits for the client, until the time is over or ctx ends; then it ends
// the container. killed says that it did.
func (k *container) await(ctx context.Context, s *start, cmd *exec.Cmd, ended chan error,
	timeout time.Duration,
) (killed bool, err error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case err := <-ended:
		return false, clientError(err)
	case <-ctx.Done():
	case <-timer.C:
	}
	if k.killFirst() {
		if err, over := endsWithin(ended, time.Second); over {
			return true, clientError(err)
		}
	}
	_ = cmd.Process.Signal(unix.SIGTERM) // it has not begun, and ends when nothing is half made
	if _, over := endsWithin(ended, killTime); !over {
		_ = cmd.Process.Kill()
		<-ended
	}
	return true, k.engine.end(ctx, k.state, s.name)
}

// endsWithin waits for a client, not longer than it may take.
func endsWithin(ended chan error, most time.Duration) (err error, over bool) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err, true
	case <-timer.C:
		return nil, false
	}
}

// clientError is an error of waiting; how the client exited is none.
func clientError(err error) error {
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		return nil
	}
	return fmt.Errorf("waiting for a container: %w", err)
}

// killFirst ends the first process of the container, and with it, in its own
// process namespace, all of them. It reports whether there was one to be found.
func (k *container) killFirst() bool {
	pid := k.number("pid")
	if pid <= 0 {
		return false
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return errors.Is(err, unix.ESRCH)
	}
	defer unix.Close(fd)
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil || !isFirst(string(status)) { // the number is another's by now
		return false
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

// isFirst reports whether a process is number 1 of a namespace below ours.
func isFirst(status string) bool {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
			f := strings.Fields(rest)
			return len(f) > 1 && f[len(f)-1] == "1"
		}
	}
	return false
}

// number is what podman wrote of a process.
func (k *container) number(name string) int {
	text, err := os.ReadFile(k.state.path(name))
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return n
}

// began tells a program that ended from one that never began: the words of the
// engine are on the program's stderr then, and its status in place of the program's.
func (k *container) began(r *lane.Result) error {
	if r.ExitCode < 125 || r.ExitCode > 127 || k.number("pid") > 0 {
		return nil
	}
	said := lastLine(r.Stderr.Data)
	if k.engine.docker && !strings.HasPrefix(strings.TrimSpace(string(r.Stderr.Data)), "docker: ") {
		return nil // the program's own: docker says who speaks
	}
	switch r.ExitCode {
	case 127:
		return fmt.Errorf("%w: %s", lane.ErrNotExist, said)
	case 126:
		return fmt.Errorf("%w: %s", lane.ErrNotProgram, said)
	}
	return fmt.Errorf("starting a container: %s", said)
}

// collect remembers the process of podman that keeps the container: it came to
// us when its parent ended, and is to be waited for.
func (k *container) collect() {
	if pid := k.number("conmon"); pid > 0 {
		k.conmons = append(k.conmons, pid)
	}
	k.reap(0)
}

// reap waits for processes of podman that have ended, or will within the time,
// and those that they left to us: they write into the state.
func (k *container) reap(within time.Duration) {
	for until := time.Now().Add(within); ; pause() {
		if list, err := lane.Children(); err == nil && within > 0 {
			k.conmons = append(k.conmons, slices.DeleteFunc(list, func(pid int) bool { return !k.state.isOf(pid) })...)
		}
		k.conmons = slices.DeleteFunc(k.conmons, func(pid int) bool {
			got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
			return got == pid || errors.Is(err, unix.ECHILD)
		})
		if len(k.conmons) == 0 || !time.Now().Before(until) {
			return
		}
	}
}

// isOf reports whether a process was started for what is in the state.
func (s *state) isOf(pid int) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return err == nil && bytes.Contains(line, []byte(s.dir+"/"))
}

// envFile is an environment as an engine reads it: from memory, so that values
// are neither in arguments nor in a folder, and name no variable of the engine's own.
func envFile(env []string) (*os.File, error) {
	var text bytes.Buffer
	for _, pair := range env {
		name, _, ok := strings.Cut(pair, "=")
		if !ok || name == "" || strings.ContainsAny(pair, "\n\r\x00") || strings.ContainsAny(name, "# \t*") ||
			len(pair) > 60<<10 {
			return nil, fmt.Errorf("%w: the variable %s cannot be given to a container: a line break, or more than 60 KiB",
				lane.ErrTooBig, strings.TrimSpace(name))
		}
		text.WriteString(pair + "\n")
	}
	fd, err := unix.MemfdCreate("env", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("writing the environment: %w", err)
	}
	f := os.NewFile(uintptr(fd), "env")
	if _, err := io.Copy(f, &text); err != nil {
		return nil, errors.Join(fmt.Errorf("writing the environment: %w", err), f.Close())
	}
	return f, nil
}
