package bundles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// Locate is where the bundle lies that an operator names: a path where something
// is, whatever it is, or else the agent that is installed in the folder agents under
// that name. What is neither stays as it is.
func Locate(agents, named string) string {
	at := installedAt(agents, named)
	if at == "" {
		return named
	}
	if _, err := os.Lstat(named); !errors.Is(err, fs.ErrNotExist) {
		return named
	}
	return at
}

// installedAt is where the agent of a name is installed; "": none is.
func installedAt(agents, name string) string {
	id, notName := ident.ParseAgent(name)
	if notName != nil {
		return ""
	}
	at := filepath.Join(agents, id.String())
	if info, err := os.Lstat(at); err != nil || !info.IsDir() {
		return ""
	}
	return at
}

// InstalledBeside is where the agent is installed that a path here has the name of; "":
// there is none, or it is the same folder.
func InstalledBeside(agents, path string) string {
	at := installedAt(agents, path)
	if at == "" || Locate(agents, path) == at {
		return ""
	}
	here, err := os.Stat(path)
	if there, gone := os.Stat(at); err == nil && gone == nil && os.SameFile(here, there) {
		return ""
	}
	return at
}

// Unnamed is err, with which what an operator named could not be read; of what could be
// an agent's name it says that it is neither a path nor that.
func Unnamed(agents, named string, err error) error {
	if _, notName := ident.ParseAgent(named); notName != nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, there := os.Lstat(Locate(agents, named)); there == nil {
		return err // a file of it is missing, or where a link leads
	}
	text := fmt.Sprintf("there is no file or folder %s here, and no agent %s is installed", named, named)
	if names, _ := Installed(agents); len(names) > 0 {
		if near := tomlfile.Near(named, names); near != "" {
			text += fmt.Sprintf("; did you mean %s?", near)
		}
		text += "; rlp agent list shows those that are"
	}
	return errors.New(text)
}
