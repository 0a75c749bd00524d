package jail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// A Resolved is what an absolute path led to at the time of the call.
type Resolved struct {
	// Path is absolute and clean, and holds no link.
	Path string
	// Missing says that not all of Path exists; what does not is as written.
	Missing bool
	// Links are the symbolic links on the way, each by its name in the folder
	// that really holds it.
	Links []string
}

// Redirect is the first link on the way that somebody may have put there who
// may not write the root folder: "" when there is none but the root's own
// entries, such as /bin.
func (r *Resolved) Redirect() string {
	for _, link := range r.Links {
		if path.Dir(link) != "/" {
			return link
		}
	}
	return ""
}

// Canonical resolves written, an absolute path: "." and ".." are taken out as
// text first, then every symbolic link of the part that exists is followed.
//
// An error is [ErrPath], too many links, a file where a directory must be, or
// a directory that may not be searched.
func Canonical(written string) (Resolved, error) {
	if !path.IsAbs(written) || strings.IndexByte(written, 0) >= 0 {
		return Resolved{}, fmt.Errorf("canonical form of %q: %w", written, ErrPath)
	}
	r := Resolved{Path: "/"}
	for todo := path.Clean(written); ; {
		var name string
		name, todo = cutFirst(todo)
		switch name {
		case "":
			return r, nil
		case "..": // out of a link's text: what is done is free of links, so this is its parent
			r.Path = path.Dir(r.Path)
			continue
		}
		here := path.Join(r.Path, name)
		text, err := linkText(here)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.Missing = true
			r.Path = here
		case err != nil:
			return Resolved{}, fmt.Errorf("canonical form of %q: %w", written, err)
		case text == "":
			r.Path = here
		default:
			if r.Links = append(r.Links, here); len(r.Links) > maxLinks {
				return Resolved{}, fmt.Errorf("canonical form of %q: more than %d symbolic links", written, maxLinks)
			}
			if path.IsAbs(text) {
				r.Path = "/"
			}
			todo = text + "/" + todo
		}
	}
}

func linkText(p string) (string, error) {
	info, err := os.Lstat(p)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return "", err
	}
	return os.Readlink(p)
}

func cutFirst(p string) (name, rest string) {
	p = strings.TrimLeft(p, "/")
	name, rest, _ = strings.Cut(p, "/")
	return name, rest
}
