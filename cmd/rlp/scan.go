package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

func (a *app) auditScanCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "scan [PATH...|installed|home]",
		Short: "Look for what gives back what should stay denied, and for what leaks together",
		Long: `Scan looks at the home and at the installed agents, at one of the two, or at
bundles and profiles by their paths:

  regrant      the floors _delegate and _untrusted, and profiles bound to agents
               that others may launch, which leave a dangerous class: delegation,
               programs, secrets, installing (HIGH); writing to the knowledge
               base, removing files (MED)
  malformed    such a file that cannot be used, or a bundle that cannot (HIGH)
  trifecta     private data, untrusted content and a way out in one agent (HIGH),
               or along a chain of delegation (MED)
  inherit      delegates keep what they have, by capability_default (INFO)
  mcp          servers that are programs, or get secrets over a URL (HIGH); others
               that are reached over the network (INFO)
  perm         secrets that others may read, policies that others may write (HIGH)

It exits with 1 when a finding is HIGH.`,
		Example: `  rlp audit scan
  rlp audit scan installed --json
  rlp audit scan agents/mailer`,
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := a.scan(args)
			if err != nil {
				return err
			}
			return ending(s.status(), s.print(a))
		},
	}
}

// A scanner gathers what is found.
type scanner struct {
	compose  func(path string, f compose.Flags) (*compose.Composition, error)
	home     home.Home
	config   config.Config
	opt      policy.Options
	settings *tomlfile.Table // config.toml, for places; nil: there is none
	floor    *caps.Layer     // _untrusted
	agents   []analysis.Agent
	findings []analysis.Finding
}

// scan looks at the home, at installed agents, or at what args name.
func (a *app) scan(args []string) (*scanner, error) {
	h, cfg, err := a.settings()
	if err != nil {
		return nil, err
	}
	s := &scanner{compose: a.compose, home: h, config: cfg, opt: a.reader().Options(h, cfg)}
	if data, err := tomlfile.ReadFile(h.Config(), 0); err == nil {
		if s.settings, err = tomlfile.Parse(h.Config(), data); err != nil {
			return nil, inputErr(err)
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
	s.findings = slices.Compact(s.findings)
	return s, nil
}

func (s *scanner) look(paths []string, ofHome, installed bool) error {
	if err := compose.Own(s.home, paths...); err != nil {
		return err
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			return inputErr(err)
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
		return inputErr(err)
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
	c, err := s.compose(path, compose.Flags{})
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
	plan, err := launcher.NewPlan(c.Policy)
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
	plan, err := launcher.NewPlan(launcher.Policy{Base: analysis.Everything(nil), Layers: []*caps.Layer{l}})
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

// delegates looks at the bindings of agents that others may launch, and at what
// is bound to nothing.
func (s *scanner) delegates() {
	names := slices.Sorted(maps.Keys(s.config.Delegation.Bindings))
	for _, a := range s.agents {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	reachable := analysis.Reachable(s.agents, names)
	for _, name := range names {
		profile, bound := s.config.Delegation.Bindings[name]
		if len(reachable[name]) > 0 && bound {
			s.profile(profile, s.home.Profile(profile), s.place("delegation", "bindings", name))
		}
	}
	inherit := s.config.Delegation.CapabilityDefault == "inherit"
	for i, agent := range s.agents {
		_, bound := s.config.Delegation.Bindings[agent.Name]
		if by := reachable[agent.Name]; inherit && !bound && len(by) > 0 {
			s.findings = append(s.findings, analysis.Kept(&s.agents[i], by, classes())...)
		}
	}
	launching := slices.DeleteFunc(slices.Clone(s.agents), func(a analysis.Agent) bool { return !a.Held.Any(caps.Agents) })
	if inherit && len(launching) > 0 {
		var who []string
		for _, a := range launching {
			who = append(who, a.Name)
		}
		s.add(analysis.Info, s.place("delegation", "capability_default"), "inherit",
			`agents that %s may launch, and that are bound to nothing, keep all that both have; capability_default = "deny" leaves them the floor %s`, strings.Join(who, ", "), policy.Delegate)
	}
}

// floors looks at the files that replace the built-in floors.
func (s *scanner) floors() {
	for _, name := range []string{policy.Delegate, policy.Untrusted} {
		file := s.home.Profile(name)
		if _, err := os.Lstat(file); err == nil {
			s.floorFile(name, file)
		}
	}
}

func (s *scanner) floorFile(name, file string) {
	l, warning := policy.Floor(name, file, s.opt)
	if warning != "" {
		s.add(analysis.High, file, "malformed", "%s", warning)
		return
	}
	s.regrants(l, file)
}

// servers looks at the MCP servers of the settings.
func (s *scanner) servers() {
	for _, name := range slices.Sorted(maps.Keys(s.config.MCP)) {
		server := s.config.MCP[name]
		at := s.place("mcp", "servers", name)
		switch {
		case len(server.Command) > 0:
			s.add(analysis.High, at, "mcp:subprocess",
				"the MCP server %s is a program of this machine (%s), %d secrets in its environment, in the lane %s", name,
				server.Command[0], len(server.Secrets), s.config.Exec.Lane)
		case len(server.Secrets) > 0:
			s.add(analysis.High, at, "mcp:egress-secrets",
				"the MCP server %s is reached over the network (%s) and given a secret", name, server.URL)
		default:
			s.add(analysis.Info, at, "mcp:egress", "the MCP server %s is reached over the network (%s)", name, server.URL)
		}
	}
}

// modes looks for what others may read or write.
func (s *scanner) modes() error {
	policies := filepath.Dir(filepath.Dir(s.home.Override("x")))
	for _, look := range []struct {
		path string
		bits fs.FileMode
		what string
	}{
		{s.home.Secrets(), 0o077, "other users may read or write what holds secrets"},
		{policies, 0o022, "other users may write what narrows agents"},
		{s.home.Config(), 0o022, "other users may write the settings"},
	} {
		err := filepath.WalkDir(look.path, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err == nil && info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&look.bits != 0 {
				s.add(analysis.High, path, "perm", "%s (mode %#o); chmod go= it", look.what, info.Mode().Perm())
			}
			return err
		})
		if err != nil {
			return inputErr(err)
		}
	}
	return nil
}

// place is where config.toml says something; the file where it does not.
func (s *scanner) place(keys ...string) string {
	at, t := s.home.Config(), s.settings
	for _, k := range keys {
		if t == nil {
			break
		}
		e, ok := t.Get(k)
		if !ok {
			break
		}
		at, t = e.Pos.String(), e.Value.Table
	}
	return at
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
	plan, err := launcher.NewPlan(launcher.Policy{Base: hosts})
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

func (s *scanner) status() int {
	for _, f := range s.findings {
		if f.Severity == analysis.High {
			return launcher.StatusFinding
		}
	}
	return launcher.StatusOK
}

func (s *scanner) print(a *app) error {
	if a.json {
		if s.findings == nil {
			s.findings = []analysis.Finding{}
		}
		return a.printJSON(s.findings)
	}
	count := map[analysis.Severity]int{}
	for _, f := range s.findings {
		count[f.Severity]++
		fmt.Fprintln(a.stdout, printable(fmt.Sprintf("%-4s %s  %s: %s", f.Severity, f.Location, f.Rule,
			strings.ReplaceAll(f.Detail, "\n", "; "))))
	}
	if len(s.findings) == 0 {
		fmt.Fprintln(a.stdout, "rlp audit scan: no findings")
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, "rlp audit scan: %d findings: %d HIGH, %d MED, %d INFO\n", len(s.findings),
		count[analysis.High], count[analysis.Med], count[analysis.Info])
	return err
}
