package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ConfineName is the argument by which rlp is told to be [Confined].
const ConfineName = "confine"

// scriptFile is where a script is for its interpreter, later.
const scriptFile = 3

// InsideID is the user and the group that programs are within their namespace.
const InsideID = 65532

// How a confined rlp ends that has started nothing; the report says why. With
// proof, it is how it ends well.
const (
	confineFailed = 125
	confineProved = 0
)

// Confined is the life of an rlp that was started to run one program: it builds
// what the program sees, gives up what the program shall not have, starts it and
// ends with it. It returns the exit status.
func Confined() int {
	runtime.LockOSThread()
	p, err := readPlan()
	if err != nil {
		return report(err)
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return report(fmt.Errorf("closing descriptors: %w", err))
	}
	if err := p.network(); err != nil {
		return report(err)
	}
	unix.Umask(0)
	p.counts() // while there is a /proc of the whole system: that of programs has processes alone
	view := p.build
	if p.Inside {
		view = p.complete
	}
	if err := view(); err != nil {
		return report(err)
	}
	if p.Executes != nil {
		if p.loaders, err = closeLoaders(append([]string{p.File}, p.Executes.Files...)); err != nil {
			return report(err)
		}
	}
	if err := p.terminal(); err != nil {
		return report(err)
	}
	unix.Umask(0o077)
	return p.act()
}

func (p *Plan) act() int {
	program, dir, err := p.find()
	var b *broker
	if err == nil {
		b, err = p.broker()
	}
	if err == nil {
		err = p.give()
	}
	var open []int
	if err == nil {
		open = p.letGo()
		err = b.listen()
	}
	if err != nil {
		return report(err)
	}
	begun()
	if p.Proof {
		return confineProved
	}
	attr := &syscall.ProcAttr{
		Dir: dir, Env: p.Env, Files: p.streams(),
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: p.Terminal},
	}
	path := "/proc/self/fd/" + strconv.Itoa(program)
	if p.Script {
		attr.Files, path = append(attr.Files, uintptr(program)), "/proc/self/fd/"+strconv.Itoa(scriptFile)
	}
	pid, err := syscall.ForkExec(path, p.Argv, attr)
	if err != nil {
		return report(notProgram(err))
	}
	deaf()
	for _, fd := range open {
		_ = unix.Close(fd)
	}
	if p.Live {
		go signals(pid)
	}
	status := until(pid)
	endRest(status)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// endRest ends what the program left here, and says so: from then on nobody is
// left but this process, and what it takes to take the sandbox down nobody waits for.
func endRest(status unix.WaitStatus) {
	if unix.Getpid() != 1 { // started by hand: all others are not the program's
		return
	}
	_ = unix.Kill(-1, unix.SIGKILL) // all at once, and whoever is being made
	for {
		_, err := unix.Wait4(-1, nil, unix.WALL, nil)
		if errors.Is(err, unix.ECHILD) {
			_, _ = unix.Write(ReportFile, []byte(Ending+strconv.Itoa(int(status))+"\n"))
			return
		}
	}
}

// Ending begins the line that says how the program ended, in the kernel's number.
const Ending = "ended "

// deaf makes this process ignore what the program could send it to end both; of
// its children's ends it must hear. The program was started before, and decides
// for itself.
func deaf() {
	ignore := [8]uintptr{1} // SIG_IGN, no flags
	for s := uintptr(1); s <= 64; s++ {
		if s != uintptr(unix.SIGCHLD) {
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&ignore)), 0, 8, 0, 0)
		}
	}
}

// letGo is what is open and is to be closed when the program has begun: the
// streams are the program's then, and end with it. What the runtime waits by is
// not a file, there is more to report, and a broker needs its folders.
func (p *Plan) letGo() []int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var list []int
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		fd, bad := strconv.Atoi(e.Name())
		if err != nil || bad != nil || fd == ReportFile || fd == SocketFile && p.Live ||
			strings.HasPrefix(to, "anon_inode:[event") ||
			slices.ContainsFunc(p.guards, func(g guardedDir) bool { return g.dir == fd }) {
			continue
		}
		list = append(list, fd)
	}
	return list
}

// notProgram marks the errors that speak of the program: no format that is
// known, or an interpreter that is not there.
func notProgram(err error) error {
	if IsOf(err, unix.ENOEXEC, unix.ENOENT, unix.EACCES) {
		return fmt.Errorf("%w: %w", errProgram, err)
	}
	return err
}

// until takes in whoever ends, until that is pid; then it is how pid ended.
func until(pid int) unix.WaitStatus {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return confineFailed << 8
		case ended == pid && (status.Signaled() || status.Exited()):
			return status
		}
	}
}

// find opens the program, which must be the file that was decided about, and
// names the folder where it starts.
func (p *Plan) find() (program int, dir string, err error) {
	if p.Proof {
		return -1, "", nil
	}
	open := func(at int, path string, flags uint64) (int, error) {
		return unix.Openat2(at, path, &unix.OpenHow{Flags: flags | unix.O_PATH | unix.O_CLOEXEC, Resolve: keepLinks})
	}
	if program, err = open(unix.AT_FDCWD, p.File, 0); err != nil {
		return -1, "", fmt.Errorf("%w: %w", errProgram, err)
	}
	if err := p.decided(program); err != nil {
		return -1, "", fmt.Errorf("%w: %w", errProgram, err)
	}
	work, err := open(unix.AT_FDCWD, p.Work, unix.O_DIRECTORY)
	if err != nil {
		return -1, "", fmt.Errorf("opening the working folder: %w", err)
	}
	at, err := open(work, p.Dir, unix.O_DIRECTORY)
	if err != nil {
		return -1, "", fmt.Errorf("opening the folder to start in: %w", err)
	}
	return program, "/proc/self/fd/" + strconv.Itoa(at), nil
}

var errProgram = errors.New("finding the program")

// give gives up what the program shall not have: this thread's, and so its own.
func (p *Plan) give() error {
	limits := []struct {
		what int
		most int64
	}{
		{unix.RLIMIT_CORE, CoreLimit},
		{unix.RLIMIT_NOFILE, 4096},
		{unix.RLIMIT_MEMLOCK, 64 << 10},
		{unix.RLIMIT_MSGQUEUE, 0},
		{unix.RLIMIT_SIGPENDING, 4096}, // counted for the user, as what [Counted] names
	}
	if p.Memory > 0 {
		limits = append(limits, struct {
			what int
			most int64
		}{unix.RLIMIT_DATA, p.Memory})
	}
	if p.Pids > 0 { // counted within the user namespace
		limits = append(limits, struct {
			what int
			most int64
		}{unix.RLIMIT_NPROC, p.Pids})
	}
	for _, l := range limits {
		if err := lower(l.what, uint64(l.most)); err != nil {
			return fmt.Errorf("bounding what programs use: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("taking new privileges from programs: %w", err)
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // nobody looks into this process
	if err := landlockFiles(p); err != nil {
		return fmt.Errorf("fencing programs in: %w", err)
	}
	if err := DropCapabilities(); err != nil {
		return fmt.Errorf("taking capabilities from programs: %w", err)
	}
	if err := p.filterStrictly(); err != nil {
		return fmt.Errorf("taking system calls from programs: %w", err)
	}
	return nil
}

// Counted are what the kernel counts for a user in all processes, the operator's own
// among them, and bounds for each user namespace beside that.
func Counted() []string {
	return []string{"max_inotify_instances", "max_inotify_watches", "max_fanotify_groups", "max_fanotify_marks"}
}

// counts bounds them in this namespace, where the system lets it.
func (p *Plan) counts() {
	for i, name := range Counted()[:len(p.Counts)] {
		if fd, err := unix.Open("/proc/sys/user/"+name, unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
			_, _ = unix.Write(fd, strconv.AppendInt(nil, p.Counts[i], 10))
			_ = unix.Close(fd)
		}
	}
}

// lower sets a limit, unless it is lower already.
func lower(what int, most uint64) error {
	var had unix.Rlimit
	if err := unix.Getrlimit(what, &had); err != nil {
		return err
	}
	had.Max = min(had.Max, most)
	had.Cur = min(had.Cur, had.Max)
	if what == unix.RLIMIT_NOFILE {
		return syscall.Setrlimit(what, &syscall.Rlimit{Cur: had.Cur, Max: had.Max})
	}
	return unix.Setrlimit(what, &had)
}

func readPlan() (*Plan, error) {
	var st unix.Stat_t
	if err := unix.Fstat(planFile, &st); err != nil || st.Size <= 0 || st.Size > maxPlan {
		return nil, errPlan
	}
	data := make([]byte, st.Size)
	if n, err := unix.Pread(planFile, data, 0); err != nil || n != len(data) {
		return nil, errPlan
	}
	return decodePlan(data)
}

// maxPlan bounds a plan: more than arguments, environment and grants can be.
const maxPlan = 64 << 20

func begun() { _, _ = unix.Write(ReportFile, []byte(Beginning)) }

// Beginning is the line that says that the program begins.
const Beginning = "begun\n"

// report says why nothing was started, in a way that rlp can tell apart.
func report(err error) int {
	kind := "lane"
	switch {
	case errors.Is(err, unix.E2BIG):
		kind = "big"
	case errors.Is(err, errProgram):
		kind = "program"
	case errors.Is(err, ErrNotKept):
		kind = "mount"
	case errors.Is(err, errLinks):
		kind = "links"
	}
	text := kind + "\n" + strings.ToValidUTF8(err.Error(), "?")
	// nobody listens: it was started by hand
	if _, err := unix.Write(ReportFile, []byte(text[:min(len(text), 4096)])); err != nil {
		_, _ = unix.Write(2, []byte("rlp "+ConfineName+": "+text+"\n"))
	}
	return confineFailed
}

// CoreLimit is the one limit of core dumps that stops those that are piped.
const CoreLimit = 1

// IsOf reports whether err is one of list.
func IsOf(err error, list ...syscall.Errno) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
