package daemon

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// namespaces are those in which a client must be where the serving process is.
func namespaces() []string { return []string{"mnt", "user", "pid", "net", "uts", "ipc", "cgroup"} }

// rights are the lines of /proc/PID/status that say what a process may do, and
// how what it makes looks like.
func rights() []string {
	return []string{
		"Umask:", "Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:",
		"NoNewPrivs:", "Seccomp:", "Seccomp_filters:",
	}
}

// bounds are the limits that must be the same; of descriptors a client may be
// allowed more.
func bounds() []int {
	return []int{unix.RLIMIT_CPU, unix.RLIMIT_FSIZE, unix.RLIMIT_DATA, unix.RLIMIT_AS}
}

// An inode tells one object of the kernel from others.
type inode struct{ dev, ino uint64 }

// attributes are what the kernel says of a process, as far as what it does could
// come out another way in another process.
type attributes struct {
	namespaces []inode
	root       inode
	rights     []byte
	limits     []unix.Rlimit
	files      unix.Rlimit
	nice, plan int // priority and scheduling policy
	cpus       unix.CPUSet
}

// attributesOf looks at a process through a handle of its folder in /proc.
func attributesOf(pid, proc int) (*attributes, error) {
	l := &attributes{}
	for _, name := range namespaces() {
		in, err := inodeOf(proc, "ns/"+name)
		if err != nil {
			return nil, err
		}
		l.namespaces = append(l.namespaces, in)
	}
	var err error
	if l.root, err = inodeOf(proc, "root"); err != nil {
		return nil, err
	}
	if l.rights, err = rightsIn(proc); err != nil {
		return nil, err
	}
	for _, what := range bounds() {
		var r unix.Rlimit
		if err := unix.Prlimit(pid, what, nil, &r); err != nil {
			return nil, os.NewSyscallError("prlimit", err)
		}
		l.limits = append(l.limits, r)
	}
	return l, errors.Join(unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &l.files), l.scheduled(pid))
}

func (l *attributes) scheduled(pid int) (err error) {
	if l.nice, err = unix.Getpriority(unix.PRIO_PROCESS, pid); err != nil {
		return os.NewSyscallError("getpriority", err)
	}
	plan, _, errno := unix.Syscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(pid), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("sched_getscheduler", errno)
	}
	l.plan = int(plan)
	return os.NewSyscallError("sched_getaffinity", unix.SchedGetaffinity(pid, &l.cpus))
}

// differs says in what a client is not like the one that serves; "" if in nothing.
func (l *attributes) differs(client *attributes) string {
	for i, name := range namespaces() {
		if l.namespaces[i] != client.namespaces[i] {
			return "another " + name + " namespace"
		}
	}
	switch {
	case l.root != client.root:
		return "another root"
	case !bytes.Equal(l.rights, client.rights):
		return "other rights: user, groups, capabilities, filters or umask"
	case client.files.Max < l.files.Max:
		return "fewer descriptors"
	case l.nice != client.nice || l.plan != client.plan:
		return "another priority"
	case l.cpus != client.cpus:
		return "other processors"
	}
	for i := range l.limits {
		if l.limits[i] != client.limits[i] {
			return "other limits"
		}
	}
	return ""
}

func inodeOf(at int, path string) (inode, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(at, path, &st, 0); err != nil {
		return inode{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return inode{uint64(st.Dev), st.Ino}, nil
}

// rightsIn are the lines of a process's status that say what it may do.
func rightsIn(proc int) ([]byte, error) {
	fd, err := unix.Openat(proc, "status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "status", Err: err}
	}
	defer unix.Close(fd)
	text := make([]byte, 16<<10)
	n, err := unix.Read(fd, text)
	if err != nil || n == len(text) { // more groups than are looked at
		return nil, errors.Join(errors.New("the status of a process is too long"), err)
	}
	var lines []byte
	for line := range bytes.Lines(text[:n]) {
		for _, name := range rights() {
			if bytes.HasPrefix(line, []byte(name)) {
				lines = append(lines, line...)
			}
		}
	}
	return lines, nil
}

// proofFD is the descriptor whose name a client has to read. Who may read it may
// look into the process, and so has nothing to gain by asking it.
const proofFD = 200

const proofPrefix = "/memfd:rlp-"

// newProof opens the descriptor under a name that nobody can guess.
func newProof() (proof [proofLen]byte, err error) {
	random := make([]byte, proofLen/2)
	rand.Read(random)
	copy(proof[:], hex.EncodeToString(random))
	fd, err := unix.MemfdCreate("rlp-"+string(proof[:]), unix.MFD_CLOEXEC)
	if err != nil {
		return proof, os.NewSyscallError("memfd_create", err)
	}
	defer unix.Close(fd)
	at, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, proofFD)
	if err == nil && at != proofFD {
		err = errors.Join(fmt.Errorf("descriptor %d is taken", proofFD), unix.Close(at))
	}
	return proof, err
}

// processes is the folder of a process.
func processes(pid int) (int, error) {
	path := "/proc/" + strconv.Itoa(pid)
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}
