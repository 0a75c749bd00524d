package compose

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/launcher/program"
	"runloop.dev/rlp/launcher/run"
)

// Protected is the layer that no file can lift: the home, /proc, /sys and /dev;
// the homes that would be used without --home or RUNLOOP_HOME; and, against writing, what decides
// about this agent, so that it cannot loosen its own next launch, and what the
// settings name, which rlp obeys, trusts or runs as the operator. The links on
// the way to these are protected too: who replaces a link replaces what is
// behind it.
func (a *Reader) Protected(c *Composition, overrides []string) (*caps.Layer, error) {
	l := policy.Protected(c.Home.Dir(), c.Home.Tenant())
	decisive := slices.Clone(overrides)
	if c.Path != "" { // or it came with a request, and lies nowhere
		decisive = append(decisive, c.Path, c.Bundle.Path)
	}
	switch {
	case c.Program != nil:
		decisive = append(decisive, c.Program.decisive()...)
	case c.Wrap != nil:
		decisive = append(decisive, c.Wrap.decisive()...)
	}
	for _, dir := range a.homes() {
		decisive = append(decisive, dir)
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		if dir != c.Home.Dir() {
			l.Deny = append(l.Deny, protect(dir, caps.AllModes(caps.FS)))
		}
	}
	adopted, err := Adopted(c.Home)
	if err != nil {
		return nil, err
	}
	decisive = slices.Concat(decisive, a.Programs(), adopted)
	for _, path := range decisive {
		deny, err := a.guard(path, false)
		if err != nil {
			return nil, err
		}
		for _, e := range deny {
			if e.Grant.Scope != c.Home.Dir() { // the home itself is denied altogether
				l.Deny = append(l.Deny, e)
			}
		}
	}
	links, err := sourceLinks(c.Config.Security.Caps.Untrusted)
	if err != nil {
		return nil, err
	}
	l.Deny = append(l.Deny, guarded(links)...)
	named, err := a.Named(c.Config)
	if err != nil {
		return nil, err
	}
	l.Deny = append(l.Deny, named...)
	return l, program.Elsewhere(l)
}

// Adopted are the settings of clients that start their servers through rlp: who writes
// them starts servers without.
func Adopted(h home.Home) ([]string, error) {
	text, err := os.ReadFile(h.Adopted())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, InputErr(fmt.Errorf("reading which clients start their servers through rlp: %w", err))
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), nil
}

// guard is what keeps a path as it is: nobody writes or removes where it ends,
// nor a link on the way there. Of a path that does not exist the first missing
// component is guarded, so that no link is put in its place. A secret is not
// read either.
func (a *Reader) guard(path string, secret bool) ([]caps.Entry, error) {
	path, err := a.from(path)
	if err != nil {
		return nil, InputErr(err)
	}
	w, err := program.Walk(path)
	if err != nil {
		return nil, InputErr(fmt.Errorf("protecting %s: %w", path, err))
	}
	list := guarded(w.Links)
	if w.Missing != "" {
		list = append(list, protect(w.Missing, changing))
	}
	modes := changing
	if secret {
		modes = caps.AllModes(caps.FS)
	}
	return append(list, protect(w.End, modes)), nil
}

// changing is what is taken of a path that an agent must leave as it is.
const changing = caps.ModeSet(1<<caps.Write | 1<<caps.Delete)

// homes are the homes that this invocation, and the next without its flags or
// without its environment, would use, as they are written.
func (a *Reader) homes() []string {
	var list []string
	runloop, user := a.getenv("RUNLOOP_HOME"), a.getenv("HOME")
	for _, from := range [][3]string{{a.HomeDir, runloop, user}, {"", runloop, user}, {"", "", user}} {
		dir, err := home.Locate(from[0], from[1], from[2])
		if err == nil {
			dir, err = filepath.Abs(dir) // HOME may be relative
		}
		if err == nil && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}

func guarded(paths []string) []caps.Entry {
	var list []caps.Entry
	for _, path := range paths {
		list = append(list, protect(path, changing))
	}
	return list
}

func protect(path string, modes caps.ModeSet) caps.Entry {
	return caps.Entry{Grant: caps.Grant{Family: caps.FS, Modes: modes, Scope: filepath.Clean(path)}}
}

// unsupported refuses a home that holds a restriction which this version does
// not enforce: it must not be read past. It verifies no signature, so that what a
// trust policy says of all that is unsigned holds for all that is launched.
func unsupported(h home.Home) error {
	path := filepath.Join(h.Dir(), "trust-policy.toml")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	data, err := tomlfile.ReadOfNoGroup(path, 0)
	if err != nil {
		return InputErr(fmt.Errorf("reading the trust policy: %w", err))
	}
	t, err := tomlfile.Parse(path, data)
	if err != nil {
		return InputErr(err)
	}
	if e, ok := t.Get("default"); ok && e.Value.Str == "refuse" {
		return &Error{Status: run.StatusPolicy, Err: &tomlfile.Error{
			Pos: e.Pos, Msg: `default = "refuse", and to this version, which verifies no signatures, every agent is unsigned`,
		}}
	}
	return InputErr(fmt.Errorf("%s: this version verifies no signatures and cannot enforce it; take the file away", path))
}

// mistaken refuses an override file whose name is almost the agent's: nothing
// would ever read it, and its author believes that it applies.
func mistaken(h home.Home, agent string) error {
	dir := filepath.Dir(h.Override(agent))
	name, right, err := policy.MisnamedOverride(dir, agent, func(name string) bool {
		_, err := os.Lstat(filepath.Join(h.Agents(), name))
		return err == nil
	})
	switch {
	case err != nil:
		return InputErr(fmt.Errorf("reading the overrides: %w", err))
	case name != "":
		whose := "of this agent"
		if right == policy.DefaultOverride+".toml" {
			whose = "of every agent"
		}
		return InputErr(fmt.Errorf("%q is not read by anything; the override %s is called %s", filepath.Join(dir, name),
			whose, right))
	}
	return nil
}
