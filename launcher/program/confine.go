package program

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"

	"runloop.dev/rlp/internal/effect/lane"
)

// ConfineFile is the program beside this one's file that confines another one: it
// is started before each program of an agent, does nothing else, and starts in a
// tenth of the time.
const ConfineFile = "rlp-confine"

// ConfineCommand starts what confines a program: the one that lies beside the
// program that children are, or, where none does that could not be anybody else's,
// that program.
func ConfineCommand(helper string) []string {
	path, self := cmp.Or(helper, "/proc/self/exe"), helper
	if self == "" {
		self, _ = os.Executable()
	}
	if self != "" && OwnConfine(self) {
		path = filepath.Join(filepath.Dir(self), ConfineFile)
	}
	return []string{path, "rlp", lane.ConfineName}
}

// OwnConfine reports whether whoever owns self put a program beside it that
// confines: nobody else may write that, or put anything into the folder.
func OwnConfine(self string) bool {
	ours, err := os.Stat(self)
	if err != nil {
		return false
	}
	dir, dirErr := os.Lstat(filepath.Dir(self))
	file, err := os.Lstat(filepath.Join(filepath.Dir(self), ConfineFile))
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
