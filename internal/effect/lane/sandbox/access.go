package sandbox

import "strings"

// An Access is what programs may do with a folder and all that is below it.
type Access uint8

// The accesses; each holds what the one before it does.
const (
	Hidden Access = iota
	ReadOnly
	ReadWrite
)

// A Folder is a path, canonical, of a folder or a file, and what programs may
// do there. Of two that hold a path the deeper one decides.
type Folder struct {
	Path   string
	Access Access
	// Own says that it is the program's alone: no name is protected in it.
	Own bool
}

// Executables are the files that the kernel executes for programs, by canonical
// paths. What may be read can be interpreted, or loaded, by a program that runs: that
// is no part of it.
type Executables struct {
	// Others says that Files are not executed, and all else is that programs see and do
	// not write; otherwise Files are, and nothing else is but the program itself.
	Others bool
	Files  []string
}

// Any is, in a protected name, a part that is called whatever it is.
const Any = "*"

// MaxLinks bounds the links of one path; the kernel follows fewer.
const MaxLinks = 40

// IsIn reports whether a clean path is one of the folders, or below it.
func IsIn(p string, folders []string) bool {
	for _, dir := range folders {
		if rest, ok := strings.CutPrefix(p, dir); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}
