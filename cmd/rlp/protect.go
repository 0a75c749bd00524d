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
	decisive := append([]string{written, c.path, c.bundle.Path}, overrides...)
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
	if self, err := os.Executable(); err == nil {
		decisive = append(decisive, self)
	}
	for _, path := range decisive {
		w, err := walk(path)
		if err != nil {
			return nil, inputErr(fmt.Errorf("protecting %s: %w", path, err))
		}
		guard := w.links
		if w.end != c.home.Dir() { // the home itself is denied altogether
			guard = append(guard, w.end)
		}
		l.Deny = append(l.Deny, guarded(guard)...)
	}
	return l, nil
}

// protectGrants guards the links by which granted paths were written: who
// replaces one moves what the next launch grants.
func protectGrants(l *caps.Layer, base []caps.Entry) error {
	for _, e := range base {
		if e.Grant.Family != caps.FS {
			continue
		}
		w, err := walk(e.Grant.Scope)
		if err != nil {
			return inputErr(fmt.Errorf("%s: protecting %s: %w", e.Pos, e.Grant.Scope, err))
		}
		l.Deny = append(l.Deny, guarded(w.links)...)
	}
	return nil
}

func guarded(paths []string) []caps.Entry {
	var list []caps.Entry
	for _, path := range paths {
		list = append(list, protect(path, caps.Modes(caps.Write, caps.Delete)))
	}
	return list
}

// A way is what the kernel meets on a path: the symbolic links, each by the
// real name of the folder that holds it, and where the path ends.
type way struct {
	links []string
	end   string
}

// maxLinks bounds the links of one path; the kernel follows fewer.
const maxLinks = 255

// walk goes along a path as the kernel does: nothing is cleaned as text, for a
// ".." behind a link leaves the folder that the link leads to.
func walk(path string) (way, error) {
	if !filepath.IsAbs(path) {
		dir, err := os.Getwd()
		if err != nil {
			return way{}, err
		}
		path = dir + "/" + path
	}
	w := way{end: "/"}
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			w.end = filepath.Dir(w.end)
			continue
		}
		here := filepath.Join(w.end, name)
		target, err := os.Readlink(here)
		if err != nil {
			w.end = here
			continue
		}
		if w.links = append(w.links, here); len(w.links) > maxLinks {
			return way{}, fmt.Errorf("more than %d symbolic links", maxLinks)
		}
		if filepath.IsAbs(target) {
			w.end = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return w, nil
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
