package compose

import (
	"errors"
	"fmt"
	"os"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/launcher/program"
	"runloop.dev/rlp/launcher/run"
)

// taint is what the operator says of inputs, for one run: which are untrusted,
// and what the run holds that had one. An agent that nothing can mark costs
// nothing here, not even a look for the file.
func (a *Reader) taint(c *Composition) (run.Taint, error) {
	t, err := SourcesOf(c.Config.Security.Caps.Untrusted, c.Config.Security.Caps.TrustedHosts)
	if c.Origin.from != nil {
		t.Cause = c.Origin.parent.Tainted
	}
	if err != nil || !t.Possible(c.Policy.Base) {
		return t, err
	}
	file, builtin := c.Home.Profile(policy.Untrusted), policy.BuiltinFloor(policy.Untrusted)
	if c.Program != nil {
		builtin = policy.ProgramFloor(c.Policy.Base, t.Trusted)
	}
	floor, warning := policy.FloorOr(builtin, file, a.Options(c.Home, c.Config))
	canonical, paths, err := run.Canonical(run.Policy{Layers: []*caps.Layer{floor}}, run.Resolvers{
		Files:    jail.Canonical,
		Programs: c.CanonicalProgram,
	})
	if r := paths.Redirected(); err == nil && len(r) > 0 && !c.Relaxed() {
		err = errors.New(r[0].String())
	}
	if err != nil {
		// A path in it cannot be followed: it is none that anybody could have meant.
		floor, warning = builtin, fmt.Sprintf("the built-in floor %s applies, for %s is not used: %v", policy.Untrusted, file, err)
	} else {
		floor = canonical.Layers[0]
	}
	t.Floor, t.Warning = floor, warning
	if _, err := os.Lstat(file); err == nil && warning == "" {
		t.Notice = fmt.Sprintf("what a run holds once it has had untrusted content is said by %s, not by the built-in floor",
			file)
	}
	return t, nil
}

// UntrustedFloor is what narrows a run of c once it has taken in untrusted content;
// nil: nothing marks it.
func (a *Reader) UntrustedFloor(c *Composition) *caps.Layer {
	t, err := a.taint(c)
	if err != nil {
		return nil // which a launch says
	}
	return t.Floor
}

// sourceLinks are the links on the way to what is untrusted. Who removes one takes
// the mark from all that is read behind it, in later runs too.
func sourceLinks(untrusted []string) (links []string, err error) {
	for _, text := range untrusted {
		s, err := caps.ParseSource(text)
		if err != nil {
			return nil, InputErr(fmt.Errorf("security.caps.untrusted: %w", err))
		}
		if !ofFiles(s) {
			continue
		}
		w, err := program.Walk(s.Grant.Scope)
		if err != nil {
			return nil, InputErr(fmt.Errorf("security.caps.untrusted: %s: %w", text, err))
		}
		links = append(links, w.Links...)
	}
	return links, nil
}

// ofFiles reports whether a source is known by a path.
func ofFiles(s caps.Source) bool {
	return s.Word != caps.SourceInput && s.Grant.Family != caps.KBRead && s.Grant.Scope != "*"
}

// SourcesOf reads the two settings, which were checked where they were read.
// Files and programs are known by their canonical paths, and as they are
// written: what becomes a link later leads to neither unseen.
func SourcesOf(untrusted, trusted []string) (t run.Taint, err error) {
	for _, text := range untrusted {
		s, err := caps.ParseSource(text)
		if err != nil {
			return t, InputErr(fmt.Errorf("security.caps.untrusted: %w", err))
		}
		t.Untrusted = append(t.Untrusted, s)
		if !ofFiles(s) {
			continue
		}
		r, err := jail.Canonical(s.Grant.Scope)
		if err != nil {
			return t, InputErr(fmt.Errorf("security.caps.untrusted: %s: %w", text, err))
		}
		if r.Path != s.Grant.Scope {
			s.Grant.Scope = r.Path
			t.Untrusted = append(t.Untrusted, s)
		}
	}
	for _, text := range trusted {
		g, err := caps.ParseTrustedHost(text)
		if err != nil {
			return t, InputErr(fmt.Errorf("security.caps.trusted_hosts: %w", err))
		}
		t.Trusted = append(t.Trusted, g)
	}
	return t, nil
}
