package jail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Canonical returns the path that written, an absolute path, stands for: "."
// and ".." taken out as text first, then every symbolic link of the part that
// exists resolved. missing says that the rest does not exist; it is kept as
// written. The answer holds no link and no ".." at the time of the call.
//
// An error is [ErrPath], too many links, a file where a directory must be, or
// a directory that may not be searched.
func Canonical(written string) (canonical string, missing bool, err error) {
	if !path.IsAbs(written) || strings.IndexByte(written, 0) >= 0 {
		return "", false, fmt.Errorf("canonical form of %q: %w", written, ErrPath)
	}
	done, todo, links := "/", path.Clean(written), 0
	for {
		var name string
		name, todo = cutFirst(todo)
		switch name {
		case "":
			return done, missing, nil
		case ".":
			continue
		case "..": // out of a link's text: done is free of links, so this is its parent
			done = path.Dir(done)
			continue
		}
		text, err := linkText(path.Join(done, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = true
			done = path.Join(done, name)
		case err != nil:
			return "", false, fmt.Errorf("canonical form of %q: %w", written, err)
		case text == "":
			done = path.Join(done, name)
		default:
			if links++; links > maxLinks {
				return "", false, fmt.Errorf("canonical form of %q: more than %d symbolic links", written, maxLinks)
			}
			if path.IsAbs(text) {
				done = "/"
			}
			todo = text + "/" + todo
		}
	}
}

// linkText returns the text of the symbolic link at p, or "" if p is no link.
func linkText(p string) (string, error) {
	info, err := os.Lstat(p)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return "", err
	}
	return os.Readlink(p)
}

// cutFirst splits the first component off p; "" when there is none.
func cutFirst(p string) (name, rest string) {
	p = strings.TrimLeft(p, "/")
	name, rest, _ = strings.Cut(p, "/")
	return name, rest
}
