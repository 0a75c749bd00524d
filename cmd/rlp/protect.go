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
// about this agent, so that it cannot loosen its own next launch. The links on
// the way to these are protected too: who replaces a link replaces what is
// behind it.
func (a *app) protected(c *composition, overrides []string) (*caps.Layer, error) {
	l := policy.Protected(c.home.Dir(), c.home.Tenant())
	written, err := home.Locate(a.homeFlag, a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
	if err != nil {
		return nil, inputErr(err)
	}
	decisive := append([]string{written, c.bundle.Path}, overrides...)
	if user := a.getenv("HOME"); filepath.IsAbs(user) {
		usual := filepath.Join(user, ".runloop")
		decisive = append(decisive, usual)
		if real, err := filepath.EvalSymlinks(usual); err == nil {
			usual = real
		}
		if usual != c.home.Dir() {
			l.Deny = append(l.Deny, protect(usual, caps.AllModes(caps.FS)))
		}
	}
	for i, path := range decisive {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, inputErr(fmt.Errorf("protecting %s: %w", path, err))
		}
		guard := links(abs)
		if i > 0 && path != written { // the home itself is denied altogether
			guard = append(guard, abs)
		}
		for _, g := range guard {
			l.Deny = append(l.Deny, protect(g, caps.Modes(caps.Write, caps.Delete)))
		}
	}
	return l, nil
}

// links are the symbolic links on the way along path and along what they lead
// to, each by the real name of the folder that holds it.
func links(path string) []string {
	var found []string
	at, rest := "/", strings.Split(strings.Trim(filepath.Clean(path), "/"), "/")
	for steps := 0; len(rest) > 0 && steps < 255; steps++ {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		here := filepath.Join(at, name)
		target, err := os.Readlink(here)
		if err != nil {
			at = here
			continue
		}
		found = append(found, here)
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(strings.Trim(filepath.Clean(target), "/"), "/"), rest...)
	}
	return found
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
