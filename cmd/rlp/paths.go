package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/home"
	"runloop.dev/rlp/launcher"
)

// makeArtifacts makes the tenant's folder of artifacts when a policy names it:
// the home makes its folders itself, so that a first launch finds it there.
func (c *composition) makeArtifacts() error {
	dir := c.home.Artifacts()
	for path := range maps.Clone(c.paths.Missing) {
		if path != dir && !strings.HasPrefix(path, dir+"/") {
			continue
		}
		if err := home.Make(dir); err != nil {
			return inputErr(err)
		}
		delete(c.paths.Missing, dir)
	}
	return nil
}

// strict refuses, under the strict path profile, a policy whose paths are not
// written as they are meant.
func (c *composition) strict() error {
	if c.config.Security.PathProfile != "strict" {
		return nil
	}
	dotted := slices.DeleteFunc(slices.Clone(c.findings), func(f policy.Finding) bool { return f.Code != policy.CodePathDotDot })
	if len(dotted) == 0 {
		return nil
	}
	for i := range dotted {
		dotted[i].Severity = policy.SeverityError
	}
	return inputErr(&dottedError{dotted})
}

// A dottedError is grants that are not written as they are meant.
type dottedError struct{ findings []policy.Finding }

func (e *dottedError) Error() string {
	lines := make([]string, len(e.findings))
	for i, f := range e.findings {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n") + `; path_profile = "strict" takes no .. in a grant`
}

// ownPaths refuses what is another tenant's, for commands that need no home
// otherwise: where there is none, nothing is anybody's.
func (a *app) ownPaths(paths ...string) error {
	dir, err := home.Locate(a.homeFlag, a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
	if err != nil {
		return nil //nolint:nilerr // no home
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	return own(h, paths...)
}

// own refuses a path that lies among what is another tenant's.
func own(h home.Home, paths ...string) error {
	for _, path := range paths {
		if h.Foreign(path) {
			return &statusError{launcher.StatusPolicy, fmt.Errorf("%s belongs to another tenant than %s", path, h.Tenant())}
		}
	}
	return nil
}
