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
	"time"

	"golang.org/x/sys/unix"
)

// statePrefix begins the names of states; the rest is short, for an engine makes
// sockets below.
func statePrefix() string { return "rlp-" + strconv.Itoa(os.Getuid()) + "-" }

// nameFile is in a state that has a container: the engine and the container's name.
const nameFile = "container"

func makeState(base, id string, files map[string][]byte) (*state, error) {
	tail := id[max(0, len(id)-12):]
	fresh := filepath.Join(base, "."+statePrefix()+tail) // until it is locked, or it looked left behind
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return nil, fmt.Errorf("making the state of a container: %w", err)
	}
	s := &state{dir: fresh}
	var err error
	if s.lock, err = lockState(s.dir); err != nil {
		return nil, errors.Join(err, os.Remove(s.dir))
	}
	s.dir = filepath.Join(base, statePrefix()+tail)
	if err := unix.Renameat2(unix.AT_FDCWD, fresh, unix.AT_FDCWD, s.dir, unix.RENAME_NOREPLACE); err != nil {
		return nil, errors.Join(fmt.Errorf("making the state of a container: %w", err), os.Remove(fresh), s.lock.Close())
	}
	for _, dir := range []string{"root", "hooks", "client"} {
		err = errors.Join(err, os.Mkdir(s.path(dir), 0o700))
	}
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(s.path(name), text, 0o600))
	}
	// everybody in a container goes through its root; out here nobody comes to it
	err = errors.Join(err, os.Chmod(s.path("root"), 0o755), os.WriteFile(s.path("empty"), nil, 0o400))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the state of a container: %w", err), s.remove())
	}
	return s, nil
}

func lockState(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the state of a container: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || int(st.Uid) != os.Getuid() {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("the state of a container is somebody else's: %s", dir)
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("locking the state of a container: %w", err)
	}
	return os.NewFile(uintptr(fd), dir), nil
}

// mountPoints makes the places of tmpfs in the empty root: an engine gives a
// place that is there already the rights of what is there.
func (s *state) mountPoints(tmpfs []string) error {
	for _, m := range tmpfs {
		dir, _, _ := strings.Cut(m, ":")
		at := s.path("root" + dir)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return fmt.Errorf("making %s: %w", dir, err)
		}
		if err := os.Chmod(at, 0o777|os.ModeSticky); err != nil {
			return fmt.Errorf("making %s: %w", dir, err)
		}
	}
	return nil
}

// remove takes the state away, and first what is still mounted in it: nothing
// is to be removed through a mount.
func (s *state) remove() error {
	for range 3 {
		below := mountsBelow(s.dir)
		if len(below) == 0 {
			break
		}
		for _, at := range below {
			_ = unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
	}
	var err error
	if left := mountsBelow(s.dir); len(left) > 0 {
		err = fmt.Errorf("the state of a container is left: %s is mounted", left[0])
	} else {
		err = os.RemoveAll(s.dir)
		for until := time.Now().Add(killTime); errors.Is(err, unix.ENOTEMPTY) &&
			time.Now().Before(until); err = os.RemoveAll(s.dir) {
			pause() // an engine that was asked to end something is at it yet
		}
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
		s.lock = nil
	}
	return err
}

// mountsBelow are the places below dir where something is mounted, the deepest first.
func mountsBelow(dir string) (list []string) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return []string{dir} // nobody knows
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			list = append([]string{f[4]}, list...)
		}
	}
	return list
}

// endLeft ends containers of an rlp that was killed together with the process
// that watched it, and takes their state away.
func (e *engine) endLeft(ctx context.Context, base string) {
	left, err := filepath.Glob(filepath.Join(base, statePrefix()+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		lock, err := lockState(dir)
		if err != nil {
			continue
		}
		s := &state{dir: dir, lock: lock}
		if name, err := os.ReadFile(s.path(nameFile)); err == nil {
			if e.end(ctx, s, strings.TrimSpace(string(name))) != nil {
				_ = lock.Close() // the next start tries again
				continue
			}
		}
		_ = s.remove()
	}
}

// end takes a container away, whatever runs in it. An engine that has begun to make
// it may still be mounting what it asks to be taken away: it is asked again.
func (e *engine) end(ctx context.Context, s *state, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineTime)
	defer cancel()
	for until := time.Now().Add(killTime); ; pause() {
		cmd := e.command(ctx, s, e.ending(s, name)...)
		var said bytes.Buffer
		cmd.Stderr = &said
		err := cmd.Run()
		if err == nil || strings.Contains(strings.ToLower(said.String()), "no such container") {
			return nil
		}
		if !strings.Contains(said.String(), unix.EBUSY.Error()) || !time.Now().Before(until) {
			return fmt.Errorf("removing the container %s: %w: %s", name, err, lastLine(said.Bytes()))
		}
	}
}

func (e *engine) ending(s *state, name string) []string {
	line := append(e.global(s), "rm", "--force", "--volumes")
	if !e.docker {
		line = append(line, "--time", "0")
	}
	return append(line, name)
}

// watch starts the watcher of a container.
func (e *engine) watch(s *state, name string) (*watcher, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("watching over a container: %w", err)
	}
	defer theirs.Close()
	line := append([]string{"-c", `read -r word || exec "$@"`, "sh", e.path}, e.ending(s, name)...)
	cmd := exec.Command("/bin/sh", line...)
	cmd.Env, cmd.Dir, cmd.Stdin = e.env(s), "/", theirs
	cmd.ExtraFiles = []*os.File{s.lock} // nobody else ends it meanwhile
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("watching over a container: %w", err), ours.Close())
	}
	return &watcher{cmd, ours}, nil
}

// dismiss ends the watcher: there is nothing to watch over any more.
func (w *watcher) dismiss() error {
	_, err := w.word.WriteString("done\n")
	return errors.Join(err, w.word.Close(), w.cmd.Wait())
}
