package kb

import (
	"os"

	"golang.org/x/sys/unix"
)

// networkFileSystem names the network file system that dir lies on, or "".
func networkFileSystem(dir string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return networkName(uint32(s.Type)), nil //nolint:gosec // magic numbers have 32 bits
}

// networkName knows the magic numbers of file systems on which neither locks
// nor shared mappings mean what this package needs.
func networkName(magic uint32) string {
	return map[uint32]string{
		0x6969: "NFS", 0x517B: "SMB", 0xFE534D42: "SMB", 0xFF534D42: "CIFS", 0x01021997: "9P",
		0x5346414F: "AFS", 0x6B414653: "AFS", 0x73757245: "Coda", 0x00C36400: "Ceph", 0x564C: "NCP",
		0x013111A8: "IBRIX", 0x19830326: "BeeGFS", 0x0BD00BD0: "Lustre", 0x7461636F: "OCFS2", 0x01161970: "GFS2",
	}[magic]
}
