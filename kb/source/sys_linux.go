package source

import (
	"os"

	"golang.org/x/sys/unix"
)

// madeUp names the file system of f if the kernel makes its files up as they are
// read: they have no length, and reading one may wait or change something.
func madeUp(f *os.File) string {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return ""
	}
	return madeUpName(uint32(s.Type)) //nolint:gosec // magic numbers have 32 bits
}

func madeUpName(magic uint32) string {
	switch magic {
	case unix.PROC_SUPER_MAGIC:
		return "procfs"
	case unix.SYSFS_MAGIC:
		return "sysfs"
	case unix.DEBUGFS_MAGIC:
		return "debugfs"
	case unix.TRACEFS_MAGIC:
		return "tracefs"
	case unix.SECURITYFS_MAGIC:
		return "securityfs"
	case unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC:
		return "cgroupfs"
	case unix.BPF_FS_MAGIC:
		return "bpffs"
	case unix.BINFMTFS_MAGIC:
		return "binfmt_misc"
	case unix.SELINUX_MAGIC:
		return "selinuxfs"
	}
	return ""
}
