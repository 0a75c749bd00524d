package lint

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/owner"
	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/launcher/compose"
)

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
		path    string
		private bool
		what    string
	}{
		{s.home.Secrets(), true, "other users may read or write what holds secrets"},
		{policies, false, "other users may write what narrows agents"},
		{s.home.Config(), false, "other users may write the settings"},
	} {
		err := filepath.WalkDir(look.path, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil || info.Mode()&fs.ModeSymlink != 0 {
				return err
			}
			who, _ := owner.WritersAt(path, info)
			if who != "" || look.private && info.Mode().Perm()&0o077 != 0 {
				s.add(analysis.High, path, "perm", "%s (mode %#o); chmod go= it", look.what, info.Mode().Perm())
			}
			return nil
		})
		if err != nil {
			return compose.InputErr(err)
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
