package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/home"
)

// protected is the layer that no file can lift: the home, /proc, /sys and /dev;
// the home that would be used without --home; and, against writing, what decides
// about this agent, so that it cannot loosen its own next launch.
func (a *app) protected(c *composition, overrides []string) (*caps.Layer, error) {
	l := policy.Protected(c.home.Dir(), c.home.Tenant())
	if user := a.getenv("HOME"); user != "" {
		usual := filepath.Join(user, ".runloop")
		if real, err := filepath.EvalSymlinks(usual); err == nil {
			usual = real
		}
		if usual != c.home.Dir() && filepath.IsAbs(usual) {
			l.Deny = append(l.Deny, protect(usual, caps.AllModes(caps.FS)))
		}
	}
	for _, path := range append([]string{c.bundle.Path}, overrides...) {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, inputErr(fmt.Errorf("protecting %s: %w", path, err))
		}
		l.Deny = append(l.Deny, protect(abs, caps.Modes(caps.Write, caps.Delete)))
	}
	return l, nil
}

func protect(path string, modes caps.ModeSet) caps.Entry {
	return caps.Entry{Grant: caps.Grant{Family: caps.FS, Modes: modes, Scope: filepath.Clean(path)}}
}

// unsupported refuses a home that holds a restriction which this version does
// not enforce: it must not be read past.
func unsupported(h home.Home) error {
	path := filepath.Join(h.Dir(), "trust-policy.toml")
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return inputErr(fmt.Errorf("looking for a trust policy: %w", err))
	}
	return inputErr(fmt.Errorf("%s: this version verifies no signatures and cannot enforce it; take the file away", path))
}

// mistaken refuses an override file whose name is almost the agent's: nothing
// would ever read it, and its author believes that it applies.
func mistaken(h home.Home, agent string) error {
	dir := filepath.Dir(h.Override(agent))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return inputErr(fmt.Errorf("reading the overrides: %w", err))
	}
	for _, e := range entries {
		for _, stem := range []string{agent, "_default"} {
			want := stem + ".toml"
			if e.Name() == want {
				continue
			}
			if strings.EqualFold(e.Name(), want) || e.Name() == stem || strings.EqualFold(e.Name(), stem+".caps") {
				return inputErr(fmt.Errorf("%s is not read by anything; an override of this agent is called %s",
					filepath.Join(dir, e.Name()), want))
			}
		}
	}
	return nil
}
