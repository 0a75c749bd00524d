package compose

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// Locate is where the bundle lies that an operator names: a path where something
// is, whatever it is, or else the agent that the home's tenant installed under that
// name. What is neither stays as it is.
func Locate(h home.Home, named string) string {
	at := installedAt(h, named)
	if at == "" {
		return named
	}
	if _, err := os.Lstat(named); !errors.Is(err, fs.ErrNotExist) {
		return named
	}
	return at
}

// installedAt is where the agent of a name is installed; "": none is.
func installedAt(h home.Home, name string) string {
	id, notName := ident.ParseAgent(name)
	if notName != nil {
		return ""
	}
	at := filepath.Join(h.Agents(), id.String())
	if info, err := os.Lstat(at); err != nil || !info.IsDir() {
		return ""
	}
	return at
}

// installedBeside is where the agent is installed that a path here has the name of; "":
// there is none, or it is the same folder.
func installedBeside(h home.Home, path string) string {
	at := installedAt(h, path)
	if at == "" || Locate(h, path) == at {
		return ""
	}
	here, err := os.Stat(path)
	if there, gone := os.Stat(at); err == nil && gone == nil && os.SameFile(here, there) {
		return ""
	}
	return at
}

// OwnBundle opens the bundle, or the module without one, that an operator names.
func (a *Reader) OwnBundle(named string) (*bundles.Bundle, error) {
	if err := a.OwnPaths(named); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(named); err == nil { // which takes no home
		b, err := bundles.OpenOrModule(named)
		if err != nil {
			return nil, InputErr(err)
		}
		return b, nil
	}
	h, err := a.Home()
	if err != nil {
		return nil, err
	}
	return openNamed(h, named, bundles.OpenOrModule)
}

// openNamed opens what an operator names. An agent is launched under the overrides
// of its own id, so that the name of another is none of it.
func openNamed(h home.Home, named string, open func(string) (*bundles.Bundle, error)) (*bundles.Bundle, error) {
	at := Locate(h, named)
	b, err := open(at)
	switch {
	case err != nil:
		return nil, InputErr(Unnamed(h, named, err))
	case at != named && b.Manifest.Agent.String() != named:
		return nil, InputErr(fmt.Errorf("what is installed at %s calls itself %s; run rlp agent install again", at,
			b.Manifest.Agent))
	}
	return b, nil
}

// Unnamed is err, with which what an operator named could not be read; of what could be
// an agent's name it says that it is neither a path nor that.
func Unnamed(h home.Home, named string, err error) error {
	if _, notName := ident.ParseAgent(named); notName != nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, there := os.Lstat(Locate(h, named)); there == nil {
		return err // a file of it is missing, or where a link leads
	}
	text := fmt.Sprintf("there is no file or folder %s here, and no agent %s is installed", named, named)
	if names, _ := bundles.Installed(h.Agents()); len(names) > 0 {
		if near := tomlfile.Near(named, names); near != "" {
			text += fmt.Sprintf("; did you mean %s?", near)
		}
		text += "; rlp agent list shows those that are"
	}
	return errors.New(text)
}
