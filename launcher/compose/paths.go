package compose

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/launcher/run"
)

// makeArtifacts makes the tenant's folder of artifacts when a policy names it:
// the home makes its folders itself, so that a first launch finds it there.
func (c *Composition) makeArtifacts() error {
	dir := c.Home.Artifacts()
	for missing := range maps.Clone(c.Paths.Missing) {
		if missing != dir && !strings.HasPrefix(missing, dir+"/") {
			continue
		}
		if err := home.Make(dir); err != nil {
			return InputErr(err)
		}
		delete(c.Paths.Missing, dir)
	}
	return nil
}

// canonical makes the paths of c what they lead to. The links on the way are
// guarded: who replaces one moves what the next launch grants, or denies. What is
// protected is named as it is already: of a link the link, and not where it leads.
// What others than the operator ask to be left with is taken as it is written in
// strict, so that a link in it leads nowhere and says nothing of the host.
func (a *Reader) canonical(c *Composition) (err error) {
	by := run.Resolvers{Files: a.Files, Programs: c.CanonicalProgram}
	if !c.Relaxed() || c.Origin.Foreign > 0 { // who does not operate learns nothing of links
		by.Asked = byText
	}
	if c.Origin.Sent {
		by.Base, by.BasePrograms = c.filesOf(), c.programsOf()
	}
	c.written = c.Policy
	protected := *c.Policy.Layers[0]
	asNamed := protected.Deny
	protected.Deny = nil
	c.Policy.Layers = append([]*caps.Layer{&protected}, c.Policy.Layers[1:]...)
	if c.Policy, c.Paths, err = run.Canonical(c.Policy, by); err != nil {
		return err
	}
	c.placeValues()
	for _, r := range c.Paths.Redirected() {
		c.Findings = append(c.Findings, policy.Finding{
			Path: r.Pos.File, Line: r.Pos.Line, Column: r.Pos.Column, Severity: policy.CodePathLink.Severity(),
			Code:    policy.CodePathLink,
			Message: fmt.Sprintf("%s leads through the link %s to %s", r.Written, r.Link, r.Path), Hint: "write " + r.Remedy(),
		})
	}
	c.Policy.Layers[0].Deny = append(asNamed, guarded(c.Paths.Links)...)
	return nil
}

// byText resolves nothing of a path but an entry of the root folder.
func byText(written string) (jail.Resolved, error) {
	top, rest, _ := strings.Cut(strings.TrimPrefix(written, "/"), "/")
	r, err := jail.Canonical("/" + top)
	r.Path, r.Missing = path.Join(r.Path, rest), false
	return r, err
}

// byItself resolves a path of a bundle that came from who does not operate: what
// is neither a file nor a folder by that very name is not there, whatever is.
func byItself(written string) (jail.Resolved, error) {
	r, err := jail.Canonical(written)
	if err == nil && !r.Missing && r.Redirect() == "" {
		if info, err := os.Lstat(r.Path); err == nil && (info.IsDir() || info.Mode().IsRegular()) {
			return r, nil
		}
	}
	if r, err = byText(written); err != nil {
		r = jail.Resolved{Path: path.Clean(written)}
	}
	r.Missing = true
	return r, nil
}

// filesOf is what resolves the paths that c's bundle names.
func (c *Composition) filesOf() run.Resolver {
	if c.Origin.Sent {
		return byItself
	}
	return jail.Canonical
}

// programsOf is what resolves the programs that c's bundle names: of one that came
// from who does not operate those alone that the operator names too, by that very
// name. Without such a name nothing is followed, whatever else takes or leaves
// programs: to say where a link leads is to tell of the host.
func (c *Composition) programsOf() run.Resolver {
	if !c.Origin.Sent {
		return c.CanonicalProgram
	}
	named := map[string]bool{}
	for _, l := range c.Policy.Operators() {
		for _, written := range execScopes(l.Allow) {
			named[written] = true
			if r, err := c.CanonicalProgram(written); err == nil {
				named[r.Path] = true
			}
		}
	}
	return func(written string) (jail.Resolved, error) {
		switch {
		case named[path.Clean(written)]:
			return c.CanonicalProgram(written)
		case c.Config.Exec.Image != "" || c.Config.Exec.Rootfs != "":
			return jail.Resolved{Path: path.Clean(written)}, nil
		}
		if r, err := byText(written); err == nil {
			return r, nil
		}
		return jail.Resolved{Path: path.Clean(written)}, nil
	}
}

// userHome is what "~/" stands for. Its links are the operator's own, and no
// agent's: the usual home of rlp lies behind them, which protects them.
func (a *Reader) userHome() string {
	dir := a.getenv("HOME")
	if !filepath.IsAbs(dir) {
		return dir
	}
	return withoutLinks(dir)
}

// aliases lets the agent of c use its grants as they were written, those in the
// operator's home folder too.
func (a *Reader) aliases(c *Composition) []jail.Alias {
	home, real := filepath.Clean(a.getenv("HOME")), a.userHome()
	if !filepath.IsAbs(home) || home == real {
		return c.Paths.Aliases
	}
	return append(c.Paths.Aliases[:len(c.Paths.Aliases):len(c.Paths.Aliases)], jail.Alias{Written: home, Canonical: real})
}

// withoutLinks is where dir is, as far as that can be told.
func withoutLinks(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// Relaxed reports whether paths may lead elsewhere than they say, or nowhere.
func (c *Composition) Relaxed() bool { return c.Config.Security.PathProfile == "relaxed" }

// Strict refuses, under the strict path profile, a policy whose paths are not
// written as they are meant.
func (c *Composition) Strict() error {
	if c.Relaxed() {
		return nil
	}
	dotted := slices.DeleteFunc(slices.Clone(c.Findings), func(f policy.Finding) bool {
		return f.Code != policy.CodePathDotDot
	})
	if len(dotted) == 0 {
		return nil
	}
	for i := range dotted {
		dotted[i].Severity = policy.SeverityError
	}
	return InputErr(&DottedError{dotted})
}

// A DottedError is grants that are not written as they are meant.
type DottedError struct{ Findings []policy.Finding }

func (e *DottedError) Error() string {
	lines := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n") + `; path_profile = "strict" takes no .. in a grant`
}

// OwnPaths refuses what is another tenant's, for commands that need no home
// otherwise: where there is none, nothing is anybody's.
func (a *Reader) OwnPaths(paths ...string) error {
	dir, err := home.Locate(a.HomeDir, a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
	if err != nil {
		return nil //nolint:nilerr // no home
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	h, err := a.Home()
	if err != nil {
		return err
	}
	return Own(h, paths...)
}

// Own refuses a path that lies among what is another tenant's.
func Own(h home.Home, paths ...string) error {
	for _, path := range paths {
		if h.Foreign(path) {
			return &Error{Status: run.StatusPolicy, Err: fmt.Errorf("%s belongs to another tenant than %s", path, h.Tenant())}
		}
	}
	return nil
}
