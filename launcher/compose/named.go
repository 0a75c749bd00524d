package compose

import (
	"fmt"
	"os"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/internal/base/home"
)

// Locate is [bundles.Locate] among the agents of a home's tenant.
func Locate(h home.Home, named string) string { return bundles.Locate(h.Agents(), named) }

// Unnamed is [bundles.Unnamed] among the agents of a home's tenant.
func Unnamed(h home.Home, named string, err error) error {
	return bundles.Unnamed(h.Agents(), named, err)
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
