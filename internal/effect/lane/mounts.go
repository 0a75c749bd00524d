package lane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// A MountTable is what is mounted where, in the order in which that was done.
type MountTable []mounted

// A mounted is one mount.
type mounted struct {
	device string // of its file system
	root   string // the folder of the file system that is shown
	at     string // where it is shown
}

// Mounts are those of this process; none where the system does not say.
func Mounts() (MountTable, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for mounts: %w", err)
	}
	var list MountTable
	for line := range strings.Lines(string(text)) { // 36 35 0:31 root mount options ...
		if fields := strings.SplitN(line, " ", 6); len(fields) == 6 {
			list = append(list, mounted{fields[2], unescaped(fields[3]), unescaped(fields[4])})
		}
	}
	return list, nil
}

// unescaped is a path as mountinfo writes it, where four bytes are octal.
func unescaped(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// MountsWithin are the places below what the agent holds where something else is
// mounted: its own files end there, and so do its programs'.
func MountsWithin(folders []Folder) ([]string, error) {
	var held []string
	for _, f := range folders {
		if f.Access > Hidden {
			held = append(held, strings.TrimSuffix(f.Path, "/"))
		}
	}
	if len(held) == 0 {
		return nil, nil
	}
	mounts, err := Mounts()
	var list []string
	for _, m := range mounts {
		if m.at != "/" && sandbox.IsIn(m.at, held) {
			list = append(list, m.at)
		}
	}
	return list, err
}

// holds reports whether a clean path is dir or below it.
func holds(p, dir string) bool { return dir == "/" || sandbox.IsIn(p, []string{dir}) }

// Elsewhere are the other paths by which mounts show a clean path, or a part of what
// lies there. A path that another mount covers is none: it is another file.
func (t MountTable) Elsewhere(p string) (list []string) {
	in := -1
	for i, m := range t {
		if holds(p, m.at) && (in < 0 || len(m.at) >= len(t[in].at)) {
			in = i
		}
	}
	if in < 0 || p == "/" {
		return nil
	}
	inside := path.Join(t[in].root, strings.TrimPrefix(p, t[in].at))
	for i, m := range t {
		if i == in || m.device != t[in].device {
			continue
		}
		same, at := p, m.at
		switch {
		case holds(inside, m.root):
			at = path.Join(m.at, strings.TrimPrefix(inside, m.root))
		case holds(m.root, inside):
			same = path.Join(p, strings.TrimPrefix(m.root, inside))
		default:
			continue
		}
		if at != p && !holds(at, p) && !differ(same, at) {
			list = append(list, at)
		}
	}
	return list
}

// differ reports whether two paths lead to two files, links not followed; what is not
// there may come to be the same.
func differ(one, other string) bool {
	a, err1 := os.Lstat(one)
	b, err2 := os.Lstat(other)
	return err1 == nil && err2 == nil && !os.SameFile(a, b)
}
