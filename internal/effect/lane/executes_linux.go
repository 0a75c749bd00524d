package lane

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// executables are what c's program executes, with what interprets scripts; nil:
// whatever it sees.
func (c *Command) executables() *Executables {
	if c.Executes == nil {
		return nil
	}
	x := &Executables{Others: c.Executes.Others, Files: slices.Clone(c.Executes.Files)}
	if x.Others {
		return x
	}
	search := ""
	for _, kv := range c.Env {
		if list, is := strings.CutPrefix(kv, "PATH="); is {
			search = list
		}
	}
	files := append([]string{c.Program}, c.Executes.Files...)
	if len(c.Argv) > 1 && path.Base(c.Argv[0]) == "env" { // what it is told to start is what was asked for
		if file := soughtByEnv(c.Argv[1:], search); file != "" {
			files, x.Files = append(files, file), append(x.Files, file)
		}
	}
	for _, file := range files {
		for _, by := range interpreters(file, search) {
			if !slices.Contains(x.Files, by) {
				x.Files = append(x.Files, by)
			}
		}
	}
	return x
}

// shown are those of x that its program is shown, wherever they lie.
func shown(x *Executables) []string {
	if x == nil || x.Others {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(x.Files), IsSystem)
}

// interpreters are the programs that are executed when a script is: what its first
// line names, and what env finds in the folders of search. They are canonical paths.
func interpreters(file, search string) (list []string) {
	for range maxInterpreters {
		words := firstLine(file)
		if len(words) == 0 || !path.IsAbs(words[0]) {
			return list
		}
		found, err := resolve(path.Clean(words[0]), closedFolders())
		if err != nil {
			return list
		}
		list = append(list, found.File)
		if file = found.File; path.Base(words[0]) != "env" {
			continue
		}
		if file = soughtByEnv(words[1:], search); file == "" {
			return list
		}
		list = append(list, file)
	}
	return list
}

// soughtByEnv is the program that env starts.
func soughtByEnv(words []string, search string) string {
	for _, w := range words {
		if strings.HasPrefix(w, "-") || strings.Contains(w, "=") {
			continue
		}
		tries := []string{w}
		if !strings.Contains(w, "/") {
			tries = nil
			for _, dir := range filepath.SplitList(search) {
				tries = append(tries, path.Join(dir, w))
			}
		}
		for _, at := range tries {
			if !path.IsAbs(at) {
				continue
			}
			found, err := resolve(path.Clean(at), closedFolders())
			if err == nil && unix.Faccessat(unix.AT_FDCWD, found.File, unix.X_OK, unix.AT_EACCESS) == nil {
				return found.File
			}
		}
		return ""
	}
	return ""
}
