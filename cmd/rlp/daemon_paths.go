package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/program"
)

// ownPath is why a launch is declined that names what each process has one of its
// own of: behind /dev/stdin, /dev/fd/3 and /proc/self/cwd a helper finds its own
// files and folders, or those of another client.
const ownPath = "a path that each process has one of its own of"

// composeHere is compose where the client is. A helper declines what it cannot
// compose: what is wrong with it, the client finds and says by itself.
func (a *app) composeHere(path string, f launchFlags) (c *compose.Composition, err error) {
	moved := a.here(func() {
		if a.invoker != nil && slices.ContainsFunc(f.files(path), eachHas) {
			a.invoker.declined = ownPath
			return
		}
		c, err = a.compose(path, f.Flags)
	})
	s := a.invoker
	switch {
	case s == nil:
		return c, err
	case s.declined == "" && (moved != nil || err != nil):
		s.declined = "what cannot be composed"
	}
	if s.declined != "" {
		return nil, errSilent
	}
	return c, nil
}

// files are those that the flags and BUNDLE have read.
func (f launchFlags) files(bundle string) []string {
	all := append([]string{bundle}, f.Overrides...)
	if at, is := strings.CutPrefix(f.input, "@"); is {
		all = append(all, at)
	}
	return all
}

// canonicalFile is [jail.Canonical] for a launch of this process's or a client's.
func (a *app) canonicalFile(written string) (jail.Resolved, error) {
	r, err := jail.Canonical(written)
	if a.invoker != nil && r.Path != written && eachHas(written) {
		a.invoker.declined = ownPath
	}
	return r, err
}

// eachHas reports whether a path leads to another file in each process: by a
// link that the kernel makes up for whoever follows it, or to a device such as
// the terminal. What cannot be followed may.
func eachHas(path string) bool {
	w, err := program.Walk(path)
	if err != nil {
		return true
	}
	if slices.ContainsFunc(w.Links, func(link string) bool { return ofProcesses(filepath.Dir(link)) }) {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && !isFile(path, os.DevNull)
}
