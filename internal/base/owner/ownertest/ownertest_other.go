//go:build !linux

package ownertest

import "os"

// Share gives what is at path a mode; no group is private here.
func Share(path string, mode os.FileMode) error { return os.Chmod(path, mode) }
