package main

import (
	"io/fs"
	"os"
	"path/filepath"

	"runloop.dev/rlp/internal/lane"
)

// confineFile is the program beside this one's file that confines another one: it
// is started before each program of an agent, does nothing else, and starts in a
// tenth of the time.
const confineFile = "rlp-confine"

// confineCommand starts what confines a program: the one that lies beside this
// program's file, or, where none does that could not be anybody else's, this program.
func confineCommand() []string {
	path := "/proc/self/exe"
	if self, err := os.Executable(); err == nil && ownConfine(self) {
		path = filepath.Join(filepath.Dir(self), confineFile)
	}
	return []string{path, "rlp", lane.ConfineName}
}

// ownConfine reports whether whoever owns self put a program beside it that
// confines: nobody else may write that, or put anything into the folder.
func ownConfine(self string) bool {
	ours, err := os.Stat(self)
	if err != nil {
		return false
	}
	dir, dirErr := os.Lstat(filepath.Dir(self))
	file, err := os.Lstat(filepath.Join(filepath.Dir(self), confineFile))
	if err != nil || dirErr != nil || !file.Mode().IsRegular() || file.Mode()&0o111 == 0 {
		return false
	}
	for _, of := range []fs.FileInfo{dir, file} {
		if of.Mode()&0o022 != 0 || !sameOwner(of, ours) {
			return false
		}
	}
	return true
}
