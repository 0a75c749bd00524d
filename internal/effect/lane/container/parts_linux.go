package container

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"runloop.dev/rlp/internal/effect/lane"
)

// container runs each program in a container of its own, by the command line of
// podman or docker.
type container struct {
	cfg lane.Config
	own Config

	mu      sync.Mutex // one program at a time
	engine  *engine
	state   *state
	work    *lane.WorkFolder
	watcher *watcher
	conmons []int // processes of podman that are to be waited for
}

// killTime is how long what was killed may take to be gone.
const killTime = 5 * time.Second

// pause gives it a moment to end.
func pause() { time.Sleep(time.Millisecond) }

// An engine is the command line that starts containers.
type engine struct {
	path     string
	docker   bool
	rootless bool   // podman without root: users are mapped
	private  bool   // it keeps all in the state of the run
	runtime  string // "" is its own choice
	cgroupfs bool   // no systemd to ask for control groups
	env0     []string
}

// A state is a folder for the time of a run: what the engine is told by files,
// and all that podman keeps. It is where no grant leads. It is locked while its
// maker lives.
type state struct {
	dir  string
	lock *os.File
}

func (s *state) path(name string) string { return filepath.Join(s.dir, name) }

// A watcher is a process that outlives an rlp that is killed, and ends its
// container then: it waits for a word that only a living rlp says.
type watcher struct {
	cmd  *exec.Cmd
	word *os.File
}

func (e *engine) global(s *state) []string {
	if e.docker {
		return []string{"--config", s.path("client"), "--context", "default"}
	}
	line := []string{
		"--remote=false", "--log-level", "error", "--events-backend", "none", "--hooks-dir", s.path("hooks"),
		"--default-mounts-file", s.path("mounts.conf"),
	}
	if e.cgroupfs {
		line = append(line, "--cgroup-manager", "cgroupfs")
	}
	if e.runtime != "" {
		line = append(line, "--runtime", e.runtime)
	}
	if e.private { // nothing of the operator's podman is touched
		line = append(line, "--root", s.path("s"), "--runroot", s.path("r"), "--tmpdir", s.path("t"), "--storage-driver",
			"vfs")
	}
	return line
}
