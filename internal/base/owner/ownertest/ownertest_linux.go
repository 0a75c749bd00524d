// Package ownertest makes files that others may write by a group.
package ownertest

import (
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// somebody is a user that no test is.
const somebody = 4711

// Share gives what is at path a mode whose group bits are not the private group's
// alone: an ACL gives them to another user as well.
func Share(path string, mode os.FileMode) error {
	const userObj, user, groupObj, mask, other, nobody = 0x01, 0x02, 0x04, 0x10, 0x20, ^uint32(0)
	acl := binary.LittleEndian.AppendUint32(nil, 2)
	perm := uint32(mode.Perm())
	for _, e := range [][3]uint32{
		{userObj, perm >> 6, nobody},
		{user, 7, somebody},
		{groupObj, perm >> 3 & 7, nobody},
		{mask, perm >> 3 & 7, nobody},
		{other, perm & 7, nobody},
	} {
		acl = binary.LittleEndian.AppendUint16(acl, uint16(e[0]))
		acl = binary.LittleEndian.AppendUint16(acl, uint16(e[1]))
		acl = binary.LittleEndian.AppendUint32(acl, e[2])
	}
	if err := os.Chmod(path, mode); err != nil {
		return err
	}
	err := unix.Setxattr(path, "system.posix_acl_access", acl, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil // then there is none that could be told
	}
	return err
}
