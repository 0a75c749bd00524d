package lane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// A Found is where a path leads.
type Found struct {
	// Named is the path with every link on the way to its last part resolved:
	// the one name that the last part has in its folder.
	Named string
	// File is where Named leads: the path of what is no link.
	File string
	// Via are the links that were followed, by the real names of the folders
	// that hold them; [Find] adds what interprets the file. Who replaces one of
	// them, or File, replaces the program.
	Via []string
}

// Resolve follows every link of an absolute clean path. It opens nothing: what
// it says was so when it was asked.
func Resolve(written string) (Found, error) { return resolve(written, nil) }

// resolve is Resolve that does not look into closed folders: a path that leads
// there is ErrClosed.
func resolve(written string, closed []string) (Found, error) {
	if !path.IsAbs(written) || path.Clean(written) != written || strings.IndexByte(written, 0) >= 0 {
		return Found{}, fmt.Errorf("resolving %q: %w", written, fs.ErrInvalid)
	}
	dir, err := walk("/", path.Dir(written), nil, closed)
	if err != nil {
		return Found{}, err
	}
	f := Found{Named: path.Join(dir.File, path.Base(written))}
	end, err := walk(dir.File, path.Base(written), dir.Via, closed)
	f.File, f.Via = end.File, end.Via
	return f, err
}

// Leads are the paths by which a program reaches what an absolute clean one leads
// to, and all that lies in it: each as written, each link on the way by its real
// name, and its end. What can be run or talked to is ErrNotData; what is closed to
// [Find] is ErrClosed, but /dev/null, which holds nothing.
func Leads(written string, closed ...string) ([]string, error) {
	if written == "/dev/null" {
		return nil, nil
	}
	l := leads{closed: append(closedFolders(), closed...), left: maxLeads}
	err := l.add(written)
	return l.paths, err
}

// maxLeads bounds what is looked at in a folder.
const maxLeads = 4096

// leads is what Leads finds.
type leads struct {
	closed, paths []string
	left          int
}

// add looks at what a path leads to. Links in circles end with l.left.
func (l *leads) add(written string) error {
	if l.left--; l.left < 0 {
		return fmt.Errorf("looking at %s: more than %d files: %w", written, maxLeads, ErrNotData)
	}
	f, err := walk("/", written, nil, l.closed)
	if err != nil {
		return err
	}
	l.paths = append(append(l.paths, written, f.File), f.Via...)
	info, err := os.Lstat(f.File)
	if err != nil {
		return fmt.Errorf("looking at %s: %w", written, err)
	}
	switch {
	case info.IsDir():
		entries, err := os.ReadDir(f.File)
		if err != nil {
			return fmt.Errorf("looking into %s: %w", written, err)
		}
		for _, e := range entries {
			if err := l.add(path.Join(f.File, e.Name())); err != nil {
				return err
			}
		}
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 != 0:
		return fmt.Errorf("%s: %w", f.File, ErrNotData)
	}
	return nil
}

// IsSystem reports whether a path is of what every lane but a container with files
// of its own shows programs of the machine.
func IsSystem(p string) bool { return sandbox.IsIn(p, sandbox.SystemPaths()) }

// walk follows the links of p, in a folder that no link leads to, as the kernel
// does. What is missing is an error, and File then its name.
func walk(dir, p string, via, closed []string) (Found, error) {
	f := Found{File: dir, Via: slices.Clone(via)}
	for rest := p; ; {
		var name string
		name, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
		switch name {
		case "":
			if rest == "" {
				return f, nil
			}
			continue
		case ".":
			continue
		case "..": // out of a link's text; File is free of links, so this is its parent
			f.File = path.Dir(f.File)
			continue
		}
		here := path.Join(f.File, name)
		if sandbox.IsIn(here, closed) {
			return f, ErrClosed
		}
		target, err := os.Readlink(here)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				f.File = path.Join(here, rest)
				return f, fmt.Errorf("resolving %s: %w", p, err)
			}
			f.File = here // EINVAL: no link
			continue
		}
		if f.Via = append(f.Via, here); len(f.Via) > sandbox.MaxLinks {
			return f, fmt.Errorf("resolving %s: more than %d links", p, sandbox.MaxLinks)
		}
		if path.IsAbs(target) {
			f.File = "/"
		}
		rest = target + "/" + rest
	}
}

// maxInterpreters bounds scripts that are interpreted by scripts; the kernel
// follows no more.
const maxInterpreters = 5

func closedFolders() []string { return []string{"/proc", "/sys", "/dev"} }

// Find is [Resolve] for a program: of a script it follows the interpreters too.
// Nothing is a program, and nothing is looked at, in the kernel's folders (/proc
// leads to whatever rlp has open) and in the closed ones; these are clean and
// free of links.
func Find(written string, closed ...string) (Found, error) {
	closed = append(closedFolders(), closed...)
	f, err := resolve(written, closed)
	if err != nil {
		return f, err
	}
	file := f.File
	for range maxInterpreters {
		by := Interpreter(file)
		if by == "" {
			return f, nil
		}
		if !path.IsAbs(by) {
			return f, fmt.Errorf("the interpreter %q of %s: %w", by, file, ErrNotProgram)
		}
		g, err := resolve(path.Clean(by), closed)
		if err != nil {
			return f, fmt.Errorf("the interpreter of %s: %w", file, err)
		}
		f.Via = append(append(f.Via, g.Via...), g.File)
		file = g.File
	}
	return f, fmt.Errorf("%s: %w: scripts that interpret scripts", written, ErrNotProgram)
}
