package lint

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
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// A scanner gathers what is found.
type scanner struct {
	reader   *compose.Reader
	home     home.Home
	config   config.Config
	opt      policy.Options
	settings *tomlfile.Table // config.toml, for places; nil: there is none
	floor    *caps.Layer     // _untrusted
	agents   []analysis.Agent
	findings []analysis.Finding
}

// Scan looks at the home, at installed agents, or at what args name: paths, "home",
// "installed"; none: both of these.
func Scan(r *compose.Reader, args []string) ([]analysis.Finding, error) {
	h, cfg, err := r.Settings()
	if err != nil {
		return nil, err
	}
	s := &scanner{reader: r, home: h, config: cfg, opt: r.Options(h, cfg)}
	if data, err := tomlfile.ReadFile(h.Config(), 0); err == nil {
		if s.settings, err = tomlfile.Parse(h.Config(), data); err != nil {
			return nil, compose.InputErr(err)
		}
	}
	s.floor, _ = policy.Floor(policy.Untrusted, h.Profile(policy.Untrusted), s.opt)
	paths, ofHome, installed := []string{}, len(args) == 0, len(args) == 0
	for _, arg := range args {
		switch arg {
		case "home":
			ofHome = true
		case "installed":
			installed = true
		default:
			paths = append(paths, arg)
		}
	}
	if err := s.look(paths, ofHome, installed); err != nil {
		return nil, err
	}
	analysis.SortFindings(s.findings)
	return slices.Compact(s.findings), nil
}

func (s *scanner) look(paths []string, ofHome, installed bool) error {
	if err := compose.Own(s.home, paths...); err != nil {
		return err
	}
	for _, path := range paths {
		if _, err := os.Stat(compose.Locate(s.home, path)); err != nil {
			return compose.InputErr(compose.Unnamed(s.home, path, err))
		}
		if strings.HasSuffix(path, ".toml") {
			s.document(path)
		} else {
			s.bundle(path)
		}
	}
	if installed || ofHome { // who may launch whom is asked of all that are there
		if err := s.installed(installed); err != nil {
			return err
		}
	}
	if ofHome {
		s.delegates()
		s.floors()
		s.servers()
		if err := s.modes(); err != nil {
			return err
		}
	}
	if installed || len(paths) > 0 {
		s.findings = append(s.findings, analysis.Trifecta(s.agents, s.trust())...)
	}
	return nil
}

func (s *scanner) add(severity analysis.Severity, location, rule, format string, args ...any) {
	s.findings = append(s.findings, analysis.Finding{
		Location: location, Rule: rule, Severity: severity,
		Detail: fmt.Sprintf(format, args...),
	})
}

// installed takes in the installed agents; what is wrong with one is told.
func (s *scanner) installed(told bool) error {
	entries, err := os.ReadDir(s.home.Agents())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return compose.InputErr(err)
	}
	for _, e := range entries {
		if _, err := ident.ParseAgent(e.Name()); err != nil {
			continue
		}
		before := len(s.findings)
		s.bundle(filepath.Join(s.home.Agents(), e.Name()))
		if !told {
			s.findings = s.findings[:before]
		}
	}
	return nil
}

// bundle takes in one agent as a launch would plan it. A path that has no value
// yet is some path.
func (s *scanner) bundle(path string) {
	c, err := s.reader.Compose(path, compose.Flags{})
	if err == nil {
		for _, p := range c.Unset {
			c.Policy.Base = append(c.Policy.Base, caps.Entry{
				Grant: caps.Grant{Family: caps.FS, Modes: caps.Modes(caps.Read), Scope: "/{" + p.Name + "}"}, Pos: p.Pos,
			})
		}
		err = s.agent(c)
	}
	if err != nil {
		s.add(analysis.High, path, "malformed", "the bundle cannot be used as it is: %v", err)
	}
}

func (s *scanner) agent(c *compose.Composition) error {
	plan, err := run.NewPlan(c.Policy)
	if err != nil {
		return err
	}
	after, _, err := plan.Effective.Narrow(s.floor)
	if err != nil {
		return err
	}
	name := c.Bundle.Manifest.Agent.String()
	if slices.ContainsFunc(s.agents, func(x analysis.Agent) bool {
		return x.Name == name &&
			x.Location == c.Bundle.PolicyPath
	}) {
		return nil
	}
	s.agents = append(s.agents, analysis.Agent{
		Name: name, Location: c.Bundle.PolicyPath, Held: plan.Effective,
		After: after, Entries: c.Policy.Base, Attached: len(c.Bundle.Tools) > 0,
	})
	return nil
}

// classes are the dangerous ones of the table of floors, and removing files,
// which the floors leave. Tools that are no host calls of this version are left
// out: nobody can be given one back.
func classes() []analysis.Class {
	var list []analysis.Class
	for _, d := range policy.Dangers() {
		c := analysis.Class{Name: d.Class, About: d.About, Grave: d.Grave}
		for _, f := range d.Families {
			c.Grants = append(c.Grants, caps.Grant{Family: f, Modes: caps.AllModes(f), Scope: "*"})
		}
		list = append(list, c)
	}
	return append(list, analysis.Class{
		Name: "destructive-fs", About: "remove files",
		Grants: []caps.Grant{{Family: caps.FS, Modes: caps.Modes(caps.Delete), Scope: "/"}},
	})
}

// regrants tells what a layer leaves of each dangerous class.
func (s *scanner) regrants(l *caps.Layer, file string) {
	plan, err := run.NewPlan(run.Policy{Base: analysis.Everything(nil), Layers: []*caps.Layer{l}})
	if err != nil {
		s.add(analysis.High, file, "malformed", "%v", err)
		return
	}
	s.findings = append(s.findings, analysis.Regranted(plan.Effective, l, file, classes())...)
}

// document looks at a profile by its path.
func (s *scanner) document(path string) {
	name := strings.TrimSuffix(filepath.Base(path), ".toml")
	if policy.IsFloor(name) {
		s.floorFile(name, path)
		return
	}
	s.profile(name, path, path)
}

// profile looks at a profile that delegates are bound to.
func (s *scanner) profile(name, file, place string) {
	p, findings, err := policy.LoadProfile(name, file, s.opt)
	if err == nil {
		err = policy.AsError(findings)
	}
	switch {
	case err != nil:
		s.add(analysis.High, file, "malformed", "the profile %s cannot be used, and the floor %s holds in its place: %v",
			name, policy.Delegate, err)
	case p == nil:
		s.add(analysis.High, place, "malformed", "there is no profile %s, and the floor %s holds in its place", name,
			policy.Delegate)
	default:
		s.regrants(p.Layer, p.Source)
	}
}

// trust says which content comes from outside, by the settings.
func (s *scanner) trust() analysis.Trust {
	t, err := compose.SourcesOf(s.config.Security.Caps.Untrusted, s.config.Security.Caps.TrustedHosts)
	if err != nil {
		t = run.Taint{} // the settings were checked where they were read; a path may be gone
	}
	var hosts []caps.Entry
	for _, g := range t.Trusted {
		hosts = append(hosts, caps.Entry{Grant: g})
	}
	plan, err := run.NewPlan(run.Policy{Base: hosts})
	trusted := func(g caps.Grant) bool { return err == nil && plan.Effective.Covers(g) }
	return analysis.Trust{
		Trusted: trusted, Input: slices.ContainsFunc(t.Untrusted, func(u caps.Source) bool {
			return u.Word == caps.SourceInput
		}), ProgramsReach: s.config.Exec.Lane == "native",
		Untrusted: func(g caps.Grant) bool {
			return slices.ContainsFunc(t.Untrusted, func(u caps.Source) bool {
				return u.Grant.Modes != 0 && u.Grant.Family == g.Family && meets(u.Grant.Scope, g.Scope)
			})
		},
	}
}

// meets reports whether one of two scopes holds the other.
func meets(a, b string) bool {
	holds := func(a, b string) bool { return a == "*" || a == "/" || a == b || strings.HasPrefix(b, a+"/") }
	return holds(a, b) || holds(b, a)
}

// ScanStatus is the exit status of a command with these findings.
func ScanStatus(found []analysis.Finding) int {
	if slices.ContainsFunc(found, func(f analysis.Finding) bool { return f.Severity == analysis.High }) {
		return run.StatusFinding
	}
	return run.StatusOK
}
