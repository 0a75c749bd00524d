package owner

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// accessACL is the attribute that holds an access control list.
const accessACL = "system.posix_acl_access"

func noACL(f *os.File) error {
	_, err := unix.Fgetxattr(int(f.Fd()), accessACL, nil)
	return none(err)
}

func noACLAt(path string) error {
	_, err := unix.Lgetxattr(path, accessACL, nil)
	return none(err)
}

// none is nil if the answer was that there is no list. A file system that has no
// such lists may have others.
func none(err error) error {
	switch {
	case errors.Is(err, unix.ENODATA):
		return nil
	case err == nil:
		return errors.New("an ACL says who else may; setfacl -b takes it away")
	}
	return fmt.Errorf("whether there is an ACL cannot be told: %w", err)
}
