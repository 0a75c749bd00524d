package container

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane"
)

// enginePath is where engines and what they need are looked for.
const enginePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// findEngine is the engine that the operator named, or the one that is here.
func findEngine(cfg *Config) (*engine, error) {
	names := []string{cfg.Engine}
	if cfg.Engine == "" {
		names = []string{"podman"}
		if cfg.Image != "" {
			names = append(names, "docker")
		}
	}
	for _, name := range names {
		path := lookIn(enginePath, name)
		if path == "" {
			continue
		}
		e := &engine{path: path, docker: filepath.Base(name) == "docker", env0: cfg.Env}
		e.private = !e.docker && cfg.Image == ""
		e.rootless = !e.docker && os.Geteuid() != 0
		if !e.docker {
			_, err := os.Stat("/run/systemd/system")
			e.cgroupfs = err != nil
			if oldHierarchy() { // crun refuses where both versions are in use
				e.runtime = lookIn(enginePath, "runc")
			}
		}
		return e, nil
	}
	return nil, &lane.UnsupportedError{
		Lane: "container", Why: strings.Join(names, " and ") + " is not in " + enginePath + ", or others may write it",
		Remedy: "install podman and runc, or name the engine by [exec] engine",
	}
}

func lookIn(path, name string) string {
	dirs := filepath.SplitList(path)
	if filepath.IsAbs(name) {
		dirs, name = []string{filepath.Dir(name)}, filepath.Base(name)
	}
	for _, dir := range dirs {
		at := filepath.Join(dir, name)
		if lane.IsTool(at) {
			return at
		}
	}
	return ""
}

// oldHierarchy reports whether control groups of the first version are in use.
func oldHierarchy() bool {
	var fs unix.Statfs_t
	return unix.Statfs("/sys/fs/cgroup", &fs) == nil && fs.Type != unix.CGROUP2_SUPER_MAGIC
}

// env is what the engine itself gets of the environment: where its images are,
// and none of what would send it elsewhere. Its settings are ours, so that
// nobody's file adds mounts or variables to a container.
func (e *engine) env(s *state) []string {
	env := []string{"PATH=" + enginePath}
	for _, pair := range e.env0 {
		name, value, _ := strings.Cut(pair, "=")
		switch name {
		case "HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME":
			env = append(env, pair)
		case "DOCKER_HOST": // another machine's files are not what was granted
			if e.docker && strings.HasPrefix(value, "unix://") {
				env = append(env, pair)
			}
		}
	}
	if e.docker {
		return env
	}
	return append(env, "CONTAINERS_CONF="+s.path("containers.conf"))
}

// command is a client of the engine, in a session of its own: what a terminal
// sends to rlp is not for it.
func (e *engine) command(ctx context.Context, s *state, line ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, e.path, line...)
	cmd.Env, cmd.Dir = e.env(s), "/"
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	cmd.WaitDelay = killTime
	return cmd
}

// fits says why the engine cannot keep what is asked for here.
func (e *engine) fits(cfg *Config) error {
	refuse := func(why, remedy string) error {
		return &lane.UnsupportedError{Lane: "container", Why: why, Remedy: remedy}
	}
	switch {
	case e.docker && cfg.Image == "":
		return refuse("docker starts images alone, and none is given", `write [exec] image, or engine = "podman"`)
	case e.docker && os.Geteuid() != 0:
		return refuse("docker runs as root and gives the working folder to nobody else", `use podman, or start rlp as root`)
	case cfg.AppArmor != "" && !hasAppArmor():
		return refuse("AppArmor is not enabled in this kernel, and exec.apparmor asks for it",
			"remove exec.apparmor, or enable AppArmor")
	case e.rootless && oldHierarchy():
		return refuse("podman bounds nothing without root where control groups are of the first version",
			"boot with the second version, or start rlp as root")
	}
	return nil
}

func hasAppArmor() bool {
	text, err := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	return err == nil && bytes.HasPrefix(text, []byte("Y"))
}

// lastLine is what an engine said last, to be told to an operator.
func lastLine(text []byte) string {
	line := bytes.TrimSpace(text)
	if at := bytes.LastIndexByte(line, '\n'); at >= 0 {
		line = line[at+1:]
	}
	return strings.ToValidUTF8(string(line[:min(len(line), 400)]), "?")
}

// trialProgram is none: what an engine cannot find in a container that it made
// shows that it can make one.
const trialProgram = "/rlp/no/such/program"
