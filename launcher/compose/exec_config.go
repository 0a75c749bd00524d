package compose

import (
	"path/filepath"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/lane/container"
)

// Bounds are what the operator asked for of programs: who wrote nothing gets
// the usual ones as well as the lane can keep them.
func Bounds(x config.Exec) (b lane.Bounds) {
	if x.AskedMemory {
		b.Memory = x.MemoryBytes
	}
	if x.AskedPids {
		b.Pids = x.Pids
	}
	return b
}

// ContainerConfig is what config.toml says of containers.
func (a *Runner) ContainerConfig(x config.Exec) container.Config {
	return container.Config{
		Engine: x.Engine, Image: x.Image, Rootfs: x.Rootfs, User: x.User, Tmpfs: x.Tmpfs, Seccomp: x.SeccompText,
		AppArmor: x.AppArmor,
		Nofile:   [2]int64{x.UlimitNofile.Soft, x.UlimitNofile.Hard}, Nproc: [2]int64{x.UlimitNproc.Soft, x.UlimitNproc.Hard},
		CPUs: x.CPUs, Env: a.Env,
	}
}

// CanonicalProgram is the path of a program without links, where programs are:
// on this machine, or in the root that containers have. What is in an image is
// not known before it runs.
func (c *Composition) CanonicalProgram(written string) (jail.Resolved, error) {
	switch x := c.Config.Exec; {
	case x.Image != "":
		return jail.Resolved{Path: filepath.Clean(written)}, nil
	case x.Rootfs != "":
		path, missing, err := container.CanonicalBelow(x.Rootfs, written)
		return jail.Resolved{Path: path, Missing: missing}, err
	}
	return jail.Canonical(written)
}
