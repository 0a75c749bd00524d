package container

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// A start is one program as the command line of an engine starts it. Whatever
// is in it, these are true of every line: no network, bounded memory and
// processes, a user who is not root, no capabilities and none to be gained, a
// root that is read only, nothing pulled, nothing kept.
type start struct {
	engine   *engine
	cfg      *Config
	bounds   lane.Bounds
	name     string
	label    string
	state    *state
	mounts   []string // of --mount
	tmpfs    []string // of --tmpfs
	workdir  string
	lifetime int64 // seconds after which the engine ends it, should nobody else
	stdin    bool
	program  string
	args     []string
}

func (s *start) line() []string {
	cfg := s.cfg
	line := append(s.engine.global(s.state), "run", "--rm", "--name", s.name, "--label", s.label,
		"--pull", "never", "--network", "none", "--sig-proxy=false", "--no-healthcheck",
		"--memory", number(s.bounds.Memory), "--memory-swap", number(s.bounds.Memory), "--pids-limit", number(s.bounds.Pids),
		"--user", cfg.User, "--read-only", "--cap-drop", "ALL",
		"--security-opt", "no-new-privileges", "--security-opt", "seccomp="+s.state.path("seccomp.json"),
		"--ulimit", "nofile="+pair(cfg.Nofile), "--ulimit", "nproc="+pair(cfg.Nproc), "--ulimit", "core="+s.core(),
		"--ipc", "private", "--cgroupns", "private", "--hostname", "rlp", "--log-driver", "none",
		"--env-file", "/proc/self/fd/3", "--workdir", s.workdir)
	if cfg.AppArmor != "" {
		line = append(line, "--security-opt", "apparmor="+cfg.AppArmor)
	}
	if cfg.CPUs > 0 {
		line = append(line, "--cpus", strconv.FormatFloat(cfg.CPUs, 'f', -1, 64))
	}
	if s.stdin {
		line = append(line, "--interactive")
	}
	for _, m := range s.tmpfs {
		line = append(line, "--tmpfs", m)
	}
	for _, m := range s.mounts {
		line = append(line, "--mount", m)
	}
	return append(append(line, s.engine.only(s)...), s.root()...)
}

// core is the limit of core dumps: this process's own, for an engine that is not
// root's cannot raise it.
func (s *start) core() string {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &own); err != nil || !s.engine.rootless {
		own.Max = sandbox.CoreLimit
	}
	most := int64(min(own.Max, sandbox.CoreLimit))
	return pair([2]int64{most, most})
}

func (s *start) root() []string {
	switch {
	case s.cfg.Image != "":
		return append([]string{"--entrypoint", s.program, s.cfg.Image}, s.args...)
	case s.cfg.Rootfs != "": // what is made in it for mounts is made in a layer above
		return append([]string{"--rootfs", s.cfg.Rootfs + ":O", s.program}, s.args...)
	}
	return append([]string{"--rootfs", s.state.path("root"), s.program}, s.args...)
}

func (e *engine) only(s *start) []string {
	if e.docker {
		return nil
	}
	line := []string{
		"--http-proxy=false", "--read-only-tmpfs=false", "--no-hosts", "--unsetenv-all", "--image-volume", "ignore",
		"--pidfile", s.state.path("pid"), "--conmon-pidfile", s.state.path("conmon"), "--timeout", number(s.lifetime),
	}
	if e.rootless {
		uid, gid, _ := strings.Cut(s.cfg.User, ":")
		line = append(line, "--userns", "keep-id:uid="+uid+",gid="+gid)
	}
	return line
}

// bindMount is a file or a folder at the path that it has outside, without what
// is mounted below it: a mount below a folder that is read only is not.
func (e *engine) bindMount(src, dst string, access lane.Access) string {
	m := "type=bind,src=" + src + ",dst=" + dst
	if access != lane.ReadWrite {
		m += ",readonly"
	}
	if e.docker {
		return m + ",bind-recursive=disabled"
	}
	return m + ",bind-nonrecursive"
}

func (e *engine) emptyMount(dst string) string {
	m := "type=tmpfs,dst=" + dst
	if e.docker {
		return m + ",tmpfs-size=4096,tmpfs-mode=0555"
	}
	return m + ",ro=true,tmpfs-size=4096,tmpfs-mode=0555,notmpcopyup"
}

// tmpfsOptions completes what the operator wrote: no devices and no set-user-id
// files, no programs unless he says so, and a size.
func (e *engine) tmpfsOptions(written string) string {
	dir, options, _ := strings.Cut(written, ":")
	said := strings.Split(options, ",")
	has := func(key string) bool {
		for _, o := range said {
			if o == key || strings.HasPrefix(o, key+"=") {
				return true
			}
		}
		return false
	}
	if options == "" {
		said = nil
	}
	for _, o := range [][3]string{
		{"rw", "ro", "rw"},
		{"noexec", "exec", "noexec"},
		{"nosuid", "", "nosuid"},
		{"nodev", "", "nodev"},
		{"size", "", "size=64m"},
		{"mode", "", "mode=1777"},
	} {
		if !has(o[0]) && (o[1] == "" || !has(o[1])) {
			said = append(said, o[2])
		}
	}
	if !e.docker {
		said = append(said, "notmpcopyup")
	}
	return dir + ":" + strings.Join(said, ",")
}

// view is what the program sees of the operator's files, as arguments.
func (s *start) view(sc *sandbox.ViewSpec, exists func(string) bool) error {
	v, err := sc.View()
	if err == nil && len(v.Kept) > 0 { // a mount alone keeps nothing: it goes with what it covers
		err = fmt.Errorf("%s: %w: the folder above it can be written", v.Kept[0].Path, sandbox.ErrNotKept)
	}
	if err != nil {
		return lane.Unkeepable("container", err.Error())
	}
	taken := map[string]bool{}
	host := s.cfg.Image == "" && s.cfg.Rootfs == ""
	for _, p := range v.Mounts {
		if p.Kind == sandbox.Devices || p.Kind == sandbox.Procs || p.Kind == sandbox.Private || p.Kind == sandbox.System &&
			!host || !exists(p.Path) {
			continue
		}
		if strings.ContainsAny(p.Path, ",\"\\\n\r") {
			return fmt.Errorf("%w: the path %q cannot be given to a container", errView, p.Path)
		}
		if !staysInPlace(p) {
			continue
		}
		taken[p.Path] = true
		s.mounts = append(s.mounts, s.mount(p))
	}
	for _, written := range s.cfg.Tmpfs {
		dir, _, _ := strings.Cut(written, ":")
		switch {
		case !taken[dir]:
			s.tmpfs = append(s.tmpfs, s.engine.tmpfsOptions(written))
		case host && slices.Contains(sandbox.SystemPaths(), dir): // what was asked for is not left out unsaid
			return fmt.Errorf("%w: exec.tmpfs names %s, where system programs are", errView, dir)
		}
	}
	return nil
}

// staysInPlace reports whether what is at the mount's path is there without a link on
// the way, or at its end: an engine would follow it.
func staysInPlace(s sandbox.Mount) bool {
	c := sandbox.MountSource{Mount: s, Tree: -1, Folder: true}
	fd, err := c.Look()
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return c.Link == "" || s.Kind == sandbox.System
}

func (s *start) mount(p sandbox.Mount) string {
	switch {
	case p.Kind != sandbox.Nothing:
		return s.engine.bindMount(p.Path, p.Path, p.Access)
	case isFolder(p.Path):
		return s.engine.emptyMount(p.Path)
	}
	return s.engine.bindMount(s.state.path("empty"), p.Path, lane.ReadOnly)
}

// isHost reports whether a path is one that every program of this machine finds
// at the same place in a container.
func isHost(p string) bool { return sandbox.IsIn(filepath.Clean(p), sandbox.SystemPaths()) }

func number(n int64) string { return strconv.FormatInt(n, 10) }

func pair(p [2]int64) string { return number(p[0]) + ":" + number(p[1]) }
