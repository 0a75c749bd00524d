package sandbox

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// OwnEtc are the files in /etc that are neither the operator's nor in a folder of
// his: in memory, and read-only with the root.
func (p *Plan) OwnEtc() map[string]string {
	files := p.etcFiles()
	for _, s := range p.Mounts {
		if s.Path == "/" || s.Path == "/etc" {
			return nil
		}
		delete(files, strings.TrimPrefix(s.Path, "/etc/"))
	}
	return files
}

// complete does what bubblewrap has no words for: devices are the machine's own,
// and a program that is their owner would change their modes; and how many files
// a private folder holds is bounded as in the lane ns.
func (p *Plan) complete() error {
	for _, name := range p.DeviceNames() {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOEXEC}
		err := unix.MountSetattr(unix.AT_FDCWD, "/dev/"+name, unix.AT_SYMLINK_NOFOLLOW, &attr)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("closing /dev/%s: %w", name, err)
		}
	}
	if err := p.mountTerminals(); err != nil {
		return err
	}
	for _, s := range p.Mounts {
		if s.Kind != Private {
			continue
		}
		options := "nr_inodes=" + mostFiles + ",size=" + strconv.FormatInt(p.Scratch, 10)
		if err := unix.Mount("", s.Path, "", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return fmt.Errorf("bounding %s: %w", s.Path, err)
		}
	}
	for _, s := range p.Mounts {
		if !s.guarded {
			continue
		}
		fd, err := unix.Open(s.Path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if errors.Is(err, unix.ENOENT) { // it was not there to be shown
			continue
		}
		if err == nil {
			err = p.guard(fd, s.Path)
		}
		if err != nil {
			return fmt.Errorf("showing %s: %w", s.Path, err)
		}
	}
	return nil
}
