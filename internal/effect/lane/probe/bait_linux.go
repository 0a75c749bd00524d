package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/effect/lane"
)

// A Bait is what lies outside of a lane for its programs to reach for: files,
// sockets, memory, a descriptor, and this process.
type Bait struct {
	dir     string
	targets targets
	closing []func() error
	leak    *os.File
}

// Lay lays the bait, most of it in folders that it makes in dir.
func Lay(dir string) (b *Bait, err error) {
	b = &Bait{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("laying bait: %w", err), b.Close())
		}
	}()
	if b.dir, err = os.MkdirTemp(dir, "probe"); err != nil {
		return b, err
	}
	b.closing = append(b.closing, func() error { return os.RemoveAll(b.dir) })
	if b.dir, err = filepath.EvalSymlinks(b.dir); err != nil {
		return b, err
	}
	for _, d := range []string{"outside", "home", "ro", "rw", "rw/denied", "rw/granted"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(b.dir, d), 0o700))
	}
	t := &b.targets
	t.Outside, t.Home, t.ReadOnly = b.in("outside/file"), b.in("home/file"), b.in("ro")
	t.Writable, t.Denied = b.in("rw"), b.in("rw/denied/file")
	t.Replaced, t.Protected, t.Later, t.Pipe = b.in("rw/replaced"), b.in("rw/protected"), b.in("ro/later"), b.in("ro/pipe")
	err = errors.Join(err, unix.Mkfifo(t.Pipe, 0o600), os.Symlink(t.Outside, b.in("rw/link")))
	for _, f := range []string{t.Outside, t.Home, t.Denied, t.Replaced, t.Protected} {
		err = errors.Join(err, os.WriteFile(f, []byte(marker), 0o600))
	}
	if err != nil {
		return b, err
	}
	t.PID = os.Getpid()
	command, err := os.ReadFile("/proc/self/cmdline")
	t.Command = string(command)
	return b, errors.Join(err, b.sockets(), b.memory())
}

func (b *Bait) in(name string) string { return filepath.Join(b.dir, name) }

// sockets listen until the bait is taken up.
func (b *Bait) sockets() error {
	t := &b.targets
	t.Unix, t.Abstract = b.in("rw/socket"), "@rlp-probe-"+strconv.Itoa(os.Getpid())+"-"+filepath.Base(b.dir)
	for network, at := range map[string]string{"tcp": "127.0.0.1:0", "unix": t.Unix, "abstract": t.Abstract} {
		if network == "abstract" {
			network = "unix"
		}
		l, err := net.Listen(network, at)
		if err != nil {
			return err
		}
		b.closing = append(b.closing, l.Close)
		if network == "tcp" {
			t.TCP = l.Addr().String()
		}
	}
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.closing = append(b.closing, u.Close)
	t.UDP = u.LocalAddr().String()
	return nil
}

// memory is shared by a key, as System V has it.
func (b *Bait) memory() error {
	b.targets.Key = int(time.Now().UnixNano()&0x3fffffff) | 1
	id, err := unix.SysvShmGet(b.targets.Key, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o600)
	if err != nil {
		return fmt.Errorf("making shared memory: %w", err)
	}
	b.closing = append(b.closing, func() error { _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); return err })
	return nil
}

// Leak opens a descriptor as one that rlp inherited is: whoever starts a program
// and does nothing about it passes it on.
func (b *Bait) Leak() error {
	f, err := os.Open(b.targets.Outside)
	if err != nil {
		return err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, 100)
	if err != nil {
		return err
	}
	b.unleak()
	b.leak, b.targets.FD = os.NewFile(uintptr(fd), "leak"), fd
	return nil
}

func (b *Bait) unleak() {
	if b.leak != nil {
		_ = b.leak.Close()
		b.leak = nil
	}
}

// Folders are what the agent holds of the bait.
func (b *Bait) Folders() []lane.Folder {
	return append(b.simple(), []lane.Folder{
		{Path: b.in("rw/denied")}, {Path: b.in("rw/replaced")}, {Path: b.in("rw/protected"), Access: lane.ReadOnly},
	}...)
}

// simple are those that every lane takes: nothing is kept where programs may
// write.
func (b *Bait) simple() []lane.Folder {
	return []lane.Folder{
		{Path: b.in("home")},
		{Path: b.in("ro"), Access: lane.ReadOnly},
		{Path: b.in("ro/later")},
		{Path: b.in("ro/pipe")},
		{Path: b.in("rw"), Access: lane.ReadWrite},
		{Path: b.in("rw/granted"), Access: lane.ReadWrite},
	}
}

// tend does, once a program has begun, what an operator does on the host: files
// take the place of others by rename, and new ones come to be. What it returns
// ends it.
func (b *Bait) tend() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if os.Remove(b.in("rw/"+begun)) == nil {
				b.replace()
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() {
		cancel()
		<-done
		for _, name := range []string{"rw/" + begun, "rw/" + tended, "ro/later"} {
			_ = os.Remove(b.in(name))
		}
	}
}

func (b *Bait) replace() {
	t := &b.targets
	for _, path := range []string{t.Replaced, t.Protected, t.Later, b.in("rw/" + tended)} {
		temp := b.in("temp")
		if os.WriteFile(temp, []byte(marker), 0o600) != nil || os.Rename(temp, path) != nil {
			return // what is not there is not refused
		}
	}
}

// Args are those of the program that makes the attempts.
func (b *Bait) Args() ([]string, error) {
	text, err := json.Marshal(b.targets)
	return []string{Name, "try", string(text)}, err
}

// Found is what such a program has said.
func (b *Bait) Found(out []byte) ([]Finding, error) {
	said := map[string]string{}
	for line := range bytes.Lines(out) {
		name, what, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		said[name] = what
	}
	var list []Finding
	for _, a := range Attempts() {
		what, ok := said[a.Name]
		if !ok {
			return nil, fmt.Errorf("trying a lane: nothing was said of %s", a.Name)
		}
		why, refused := strings.CutPrefix(what, "refused ")
		list = append(list, Finding{Attempt: a, Refused: refused, Why: why})
		if a.Name == "survivor" && !refused {
			b.outlived(&list[len(list)-1])
		}
	}
	return list, nil
}

// outlived looks whether the process that was left behind lives, and ends it.
func (b *Bait) outlived(f *Finding) {
	lock := b.in("rw/lingering")
	if !Locked(lock) {
		f.Refused, f.Why = true, "it was ended"
		return
	}
	_ = os.WriteFile(lock+".stop", nil, 0o600)
	for until := time.Now().Add(5 * time.Second); Locked(lock) && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	_ = os.Remove(lock + ".stop")
}

// In makes the attempts inside l, by a program that is rlp. A lane that says of
// itself that it judges no links is believed: in a container the program may be
// somebody who writes nothing here.
func (b *Bait) In(ctx context.Context, l lane.Lane, program string) ([]Finding, error) {
	list, err := b.tried(ctx, l, program)
	label := l.Controls()[lane.Links]
	for i := range list {
		if f := &list[i]; f.Control == lane.Links && label.Level == lane.Unsupported {
			f.Refused, f.Why = false, label.Why
		}
	}
	return list, err
}

// tried makes them. A lane that starts no program where something is kept in a
// folder that can be written keeps it so.
func (b *Bait) tried(ctx context.Context, l lane.Lane, program string) ([]Finding, error) {
	list, err := b.with(ctx, l, program, b.Folders())
	var refused *lane.UnsupportedError
	if !errors.As(err, &refused) {
		return list, err
	}
	if list, err = b.with(ctx, l, program, b.simple()); err != nil {
		return nil, err
	}
	for i := range list {
		switch list[i].Name {
		case "denied_read", "denied_replaced", "protected_replaced":
			list[i].Refused, list[i].Why = true, "no program is started: "+refused.Why
		}
	}
	return list, nil
}

func (b *Bait) with(ctx context.Context, l lane.Lane, program string, folders []lane.Folder) ([]Finding, error) {
	args, err := b.Args()
	if err == nil {
		err = b.Leak()
	}
	if err != nil {
		return nil, err
	}
	defer b.unleak()
	defer b.tend()()
	r, err := l.Run(ctx, &lane.Command{
		Program: program, Argv: append([]string{"rlp"}, args...), Folders: folders, Timeout: time.Minute, MaxOutput: 1 << 16,
	})
	if err != nil {
		return nil, err
	}
	if r.ExitCode != 0 || r.TimedOut {
		return nil, fmt.Errorf("trying the lane %s: exit %d: %s", l.Name(), r.ExitCode, r.Stderr.Data)
	}
	return b.Found(r.Stdout.Data)
}

// Close takes the bait up.
func (b *Bait) Close() error {
	b.unleak()
	var errs []error
	for i := len(b.closing) - 1; i >= 0; i-- {
		errs = append(errs, b.closing[i]())
	}
	b.closing = nil
	return errors.Join(errs...)
}
