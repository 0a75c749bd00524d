package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane"
)

// The tests' own program is an rlp that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "leave-container" {
		fmt.Println(leaveContainer(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// file is a program of the machine by its canonical path.
func file(t *testing.T, path string) string {
	t.Helper()
	f, err := lane.Resolve(path)
	if err != nil {
		t.Fatal(err)
	}
	return f.File
}

func shell(t *testing.T, script string) *lane.Command {
	return &lane.Command{
		Program: file(t, "/bin/sh"), Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
		Timeout: time.Minute, MaxOutput: 1 << 20,
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// newContainer is the lane, checked; nil where there is no podman.
func newContainer(t *testing.T, change ...func(*lane.Config)) *container {
	t.Helper()
	if lookIn(enginePath, "podman") == "" { // what is said then is another test
		return nil
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := lane.Config{
		Work: filepath.Join(dir, "agent", "run"), ID: fmt.Sprintf("test-%d-%d", os.Getpid(), time.Now().UnixNano()),
		Container: Config{},
	}
	for _, c := range change {
		c(&cfg)
	}
	l, err := lane.Open(t.Context(), "container", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.(*container)
}

func inContainer(t *testing.T, k *container, c *lane.Command) *lane.Result {
	t.Helper()
	r, err := k.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// openDir is a folder that everybody may go to.
func openDir(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "lane-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "file"), "text\n")
	if err := os.Chmod(filepath.Join(dir, "file"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

//rlp:holds K44 K49 K65
func TestAContainerHasWhatItIsGivenAndNothingElse(t *testing.T) {
	t.Setenv("OPERATORS", "own")
	k := newContainer(t, func(c *lane.Config) { c.Bounds = lane.Bounds{Memory: 128 << 20, Pids: 40} })
	if k == nil {
		return
	}
	read, write, other := openDir(t, 0o755), openDir(t, 0o777), openDir(t, 0o755)
	put(t, filepath.Join(read, "hidden"), "secret\n")
	c := shell(t, `
printf '%s|' "$0" "$@"; cat; echo; env; pwd; id -u; id -g; cat /proc/self/status
echo made >in-work; echo made >/tmp/x && echo tmp-written; echo made >`+write+`/made
for f in / /usr /etc `+read+`; do echo x >$f/y; done 2>/dev/null && echo WROTE
cat `+read+`/file; ls `+other+` /root /home /var/lib /etc/shadow /run 2>/dev/null; cat `+read+`/hidden
cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max 2>/dev/null
grep ' / \| /tmp ' /proc/mounts; cat /proc/net/dev; ls /proc/self/fd; ulimit -n; echo err >&2; exit 7`)
	c.Argv = append(c.Argv, "zero", "a b", "", "$HOME;*")
	c.Env = append(c.Env, "ONE=1 = '2'", "HOME="+k.cfg.Work)
	c.Stdin = []byte("stdin")
	c.Folders = []lane.Folder{
		{Path: read, Access: lane.ReadOnly},
		{Path: write, Access: lane.ReadWrite},
		{Path: filepath.Join(read, "hidden"), Access: lane.Hidden},
	}
	r := inContainer(t, k, c)
	out := string(r.Stdout.Data)
	for _, want := range []string{
		"zero|a b||$HOME;*|stdin\n", "\nONE=1 = '2'\n", "\nHOME=" + k.cfg.Work + "\n", "\n" + k.cfg.Work + "\n65532\n65532\n",
		"CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n",
		"\ntmp-written\ntext\n", "134217728\n", "\n40\n", " / ", "noexec", "\n1024\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, wrong := range []string{
		"OPERATORS", "container=", "WROTE", "secret", "shadow", "eth0", " / overlay rw",
		filepath.Base(other),
	} {
		if strings.Contains(out, wrong) {
			t.Errorf("%q is there", wrong)
		}
	}
	if r.ExitCode != 7 || r.TimedOut || !strings.HasSuffix(string(r.Stderr.Data), "err\n") || t.Failed() {
		t.Errorf("%d, %v\n%s\n%s", r.ExitCode, r.TimedOut, out, r.Stderr.Data)
	}
	for path, want := range map[string]string{
		filepath.Join(k.cfg.Work, "in-work"): "made\n",
		filepath.Join(write, "made"):         "made\n", filepath.Join(read, "hidden"): "secret\n",
	} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	text, err := exec.Command("/bin/sh", "-c", "echo x >"+other+"/y; cat "+filepath.Join(read, "hidden")).Output()
	if err != nil || string(text) != "secret\n" {
		t.Errorf("control: %s, %v", text, err)
	}
	refusedPrograms(t, k)
	state := k.state.dir
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(state); !errors.Is(err, os.ErrNotExist) || len(k.conmons) != 0 || len(mountsBelow(state)) != 0 {
		t.Errorf("left: %v, %v", err, k.conmons)
	}
}

// refusedPrograms are answered as in other lanes.
func refusedPrograms(t *testing.T, k *container) {
	t.Helper()
	rooted := filepath.Join(openDir(t, 0o755), "rooted")
	put(t, rooted, "#!/bin/sh\nid -u\n")
	if err := os.Chmod(rooted, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program, dir string
		want         error
	}{
		{"/usr/bin/nosuch", "", lane.ErrNotExist},
		{"/etc", "", lane.ErrNotProgram},
		{"/etc/passwd", "", lane.ErrNotProgram},
		{"/bin/true", "../..", lane.ErrDir},
		{rooted, "", lane.ErrNotProgram}, // for root alone, and nobody is root
	} {
		r, err := k.Run(t.Context(), &lane.Command{
			Program: c.program, Argv: []string{c.program}, Dir: c.dir, Timeout: time.Minute,
			MaxOutput: 1 << 10,
		})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", c.program, r, err)
		}
	}
	if _, err := k.Run(t.Context(), &lane.Command{
		Program: file(t, "/bin/true"), Env: []string{"A=b\nc"},
		Timeout: time.Minute,
	}); !errors.Is(err, lane.ErrTooBig) {
		t.Errorf("a line break: %v", err)
	}
	for name, c := range map[string]*lane.Command{
		"network": {Network: &lane.OwnNetwork{}}, "streams": {Live: &lane.Live{}},
	} {
		var u *lane.UnsupportedError
		if _, err := k.Run(t.Context(), c); !errors.As(err, &u) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// reaching says what a program gets at: sockets, and the process whose number it is told.
const reaching = `unshare -U true && echo users
perl -e 'for (["tcp", 2, 1], ["udp", 2, 2], ["unix", 1, 1], ["netlink", 16, 3], ["packet", 17, 3]) {
	print "$_->[0] " if socket(S, $_->[1], $_->[2], 0) }
print "memory " if open(M, "+<", "/proc/$ARGV[0]/mem"); print "signal " if kill(0, $ARGV[0]);
print "pair" if socketpair(A, B, 1, 1, 0)' `

// Sockets, other processes and more of the kernel are taken from programs; out
// here the same program reaches them. What else is, the probes of lanes try.
//
//rlp:holds K44
func TestWhatContainersCannotReach(t *testing.T) {
	k := newContainer(t)
	if k == nil {
		return
	}
	script := reaching + strconv.Itoa(os.Getpid())
	free, err := exec.Command("/bin/sh", "-c", script).Output()
	for _, what := range []string{"tcp udp unix netlink ", "signal pair"} {
		if err != nil || !strings.Contains(string(free), what) {
			t.Errorf("control: %v, %s", err, free)
		}
	}
	if r := inContainer(t, k, shell(t, script)); string(r.Stdout.Data) != "pair" {
		t.Errorf("%s\n%s", r.Stdout.Data, r.Stderr.Data)
	}
}

//rlp:holds K42
func TestAContainerEndsOnTime(t *testing.T) {
	k := newContainer(t)
	if k == nil {
		return
	}
	mark := strconv.FormatInt(time.Now().UnixNano()%1e9+1e9, 10)
	c := shell(t, "echo begun; sleep "+mark+" & setsid sleep "+mark+" & trap '' TERM INT HUP; while :; do sleep "+mark+
		"; done")
	for c.Timeout = time.Second; ; c.Timeout *= 2 { // a busy machine takes longer to begin
		began := time.Now()
		r := inContainer(t, k, c)
		if took := time.Since(began); !r.TimedOut || r.ExitCode != 137 || took < c.Timeout || took > time.Minute {
			t.Errorf("%v: %+v", took, r)
		}
		if string(r.Stdout.Data) == "begun\n" {
			break
		}
		if c.Timeout > 20*time.Second || len(r.Stdout.Data) > 0 {
			t.Fatalf("%v: %+v", c.Timeout, r)
		}
	}
	if left := running(mark); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	for _, begun := range []func(string) []int{starting, running} { // while it is made, and while it runs
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for len(begun(mark)) == 0 && ctx.Err() == nil {
				pause()
			}
			cancel()
		}()
		c := &lane.Command{Program: file(t, "/bin/sleep"), Argv: []string{"/bin/sleep", mark}, Timeout: time.Minute}
		if r, err := k.Run(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", r, err)
		}
		cancel()
		if left := starting(mark); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// running are the programs with a word for an argument, starting also those
// that speak of them.
func running(word string) []int { return sleepers(word, strings.HasPrefix) }

func starting(word string) []int { return sleepers(word, strings.Contains) }

func sleepers(word string, has func(s, part string) bool) (pids []int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		text, err := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && (has(string(text), "/bin/sleep\x00"+word+"\x00") || has(string(text), "sleep\x00"+word+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// What a killed rlp left running ends without anybody starting another.
func TestAContainerDoesNotOutliveRlp(t *testing.T) {
	if newContainer(t) == nil {
		return
	}
	for i, begun := range []func(string) []int{starting, running} { // while it is made, and while it runs
		mark := strconv.FormatInt(time.Now().UnixNano()%1e9+int64(i+2)*1e9, 10)
		cmd := exec.Command("/proc/self/exe", "leave-container", t.TempDir()+" "+mark)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the program begins", func() bool { return len(begun(mark)) > 0 })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		eventually(t, "the program ends", func() bool { reapAny(); return len(starting(mark)) == 0 })
		k := newContainer(t) // takes away what is left of it
		eventually(t, "nothing is left", func() bool {
			k.engine.endLeft(t.Context(), k.own.State)
			left, err := filepath.Glob(filepath.Join(k.own.State, statePrefix()+"*"+strconv.Itoa(cmd.Process.Pid)))
			return err == nil && len(left) == 0
		})
		if left := starting(mark); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		eventually(t, "all that came to us has ended", reapAny)
	}
}

// reapAny waits for podman's own processes: they come to us, and not to the rlp
// that was killed. It reports whether none is left.
func reapAny() bool {
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
			return errors.Is(err, unix.ECHILD)
		}
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !is(); pause() {
		if time.Now().After(until) {
			t.Fatalf("it is not so that %s", what)
		}
	}
}

// leaveContainer is an rlp that is killed while a container runs.
func leaveContainer(arg string) error {
	dir, mark, _ := strings.Cut(arg, " ")
	k, err := Config{}.Lane(lane.Config{
		Work: filepath.Join(dir, "agent", "run"), ID: "left-" + strconv.Itoa(os.Getpid()),
	})
	if err != nil {
		return err
	}
	sleep, err := lane.Resolve("/bin/sleep")
	if err != nil {
		return err
	}
	_, err = k.Run(context.Background(), &lane.Command{
		Program: sleep.File, Argv: []string{"/bin/sleep", mark},
		Timeout: time.Hour, MaxOutput: 1,
	})
	return err
}

// A folder of the operator's that cannot be is refused before the run.
//
//rlp:holds K51
func TestAPrivateFolderOverSystemPrograms(t *testing.T) {
	if newContainer(t) == nil {
		return
	}
	var u *lane.UnsupportedError
	l, err := lane.Open(t.Context(), "container", lane.Config{Container: Config{Tmpfs: []string{"/tmp", "/usr:size=1m"}}})
	if !errors.As(err, &u) || !strings.Contains(u.Why, "/usr") {
		t.Errorf("%v, %v", l, err)
	}
}

// An engine can only cover a name: a run that would need more is refused.
//
//rlp:holds K52 K67
func TestAContainerRefusesWhatItCannotKeep(t *testing.T) {
	dir := openDir(t, 0o777)
	k := newContainer(t)
	if k == nil {
		return
	}
	c := shell(t, "true")
	c.Folders = []lane.Folder{{Path: dir, Access: lane.ReadWrite}, {Path: dir + "/file", Access: lane.ReadOnly}}
	var e *lane.UnsupportedError
	if r, err := k.Run(t.Context(), c); !errors.As(err, &e) || !strings.Contains(e.Error(), dir+"/file") {
		t.Errorf("%+v, %v", r, err)
	}
	c.Folders = c.Folders[:1]
	if r := inContainer(t, k, c); r.ExitCode != 0 { // control
		t.Errorf("%+v", r)
	}
}
