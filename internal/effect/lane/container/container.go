// Package container is the lane in which each program runs in a container of its
// own, which the command line of podman or docker starts.
package container

import "time"

// A Config is what the operator says of containers. What is left out is
// as strong as it can be.
type Config struct {
	// Engine is "podman", "docker" or the absolute path of one; "" is podman, or
	// docker where there is an image and no podman.
	Engine string
	// Image is what the engine has by this name; Rootfs is a folder instead.
	// Without either the host's own programs are run, in an empty root.
	Image, Rootfs string
	User          string   // uid:gid; "" is 65532:65532
	Tmpfs         []string // folder:options; nil is /tmp
	Seccomp       []byte   // a profile; nil is the engine's
	AppArmor      string   // the name of a profile; "" is the engine's
	Nofile, Nproc [2]int64 // soft and hard; 0 is 1024 and 4096
	CPUs          float64  // 0 is all
	// Env is the environment that rlp has: where the engine keeps its images is
	// in it. No program gets any of it.
	Env []string
	// State is where a folder is made for the time of a run; "" is /dev/shm,
	// which no grant covers.
	State string
}

func (c Config) orDefault() Config {
	if c.User == "" {
		c.User = "65532:65532"
	}
	if c.Tmpfs == nil {
		c.Tmpfs = []string{"/tmp:rw,noexec,nosuid,nodev,size=64m"}
	}
	if c.Nofile == [2]int64{} {
		c.Nofile = [2]int64{1024, 1024}
	}
	if c.Nproc == [2]int64{} {
		c.Nproc = [2]int64{4096, 4096}
	}
	if c.State == "" {
		c.State = "/dev/shm"
	}
	return c
}

// engineTime is how long an engine may take for something that is not a program.
const engineTime = 20 * time.Second
