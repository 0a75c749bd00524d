package sandbox

import "golang.org/x/sys/unix"

// DropCapabilities leaves this thread none, and so its programs: who may gain no
// privileges has after executing a file at most those of before, root too. The
// bounding set is emptied as well where this thread may.
func DropCapabilities() error {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // old kernels have no ambient set
	for c := uintptr(0); c <= 63; c++ {
		if unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) != nil { // EINVAL: the kernel has no more; EPERM: no right to
			break
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
