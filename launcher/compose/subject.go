package compose

import (
	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/places"
	"runloop.dev/rlp/launcher/run"
)

// Subject is what questions about the agent of c are asked of.
func (c *Composition) Subject() *ask.Subject {
	s := &ask.Subject{
		Bundle: c.Bundle, Policy: c.Policy, Paths: c.Paths, Params: c.params, Unset: c.Unset, Findings: c.Findings,
		Override: c.Home.Override(c.Bundle.Manifest.Agent.String()), Relaxed: c.Relaxed(), Programs: c.CanonicalProgram,
		Domains: c.domains(),
	}
	if len(c.programs) > 0 {
		s.Execs = c.programs[0]
	}
	return s
}

// SubjectOf is the subject of questions about a run of which there is only what it
// recorded: r is its first record. What had no policy asked for what --allow named.
func (a *Reader) SubjectOf(r *audit.Record) (*ask.Subject, error) {
	name, err := ident.ParseAgent(r.Head.Agent)
	if err != nil {
		return nil, InputErr(err)
	}
	c := &Composition{Origin: a.Origin, Bundle: &bundles.Bundle{
		Manifest: &bundles.Manifest{Agent: name}, Digest: r.Head.BundleDigest,
		Bare: r.Event != nil && !r.Event.PolicyPresent,
	}}
	if err := a.Settle(c); err != nil {
		return nil, err
	}
	return c.Subject(), nil
}

// Equipped is the subject with the tools of its bundle.
func (c *Composition) Equipped() (s *ask.Subject, err error) {
	s = c.Subject()
	if s.Tools, err = c.Tools(); err != nil {
		return nil, InputErr(err)
	}
	return s, nil
}

// Told is the subject for somebody who does not operate, to whom places of the
// host are named as n does. Its paths of files are as they are written: whatever was
// said of where they lead, a guess could confirm.
func (c *Composition) Told(n *places.Names) (*ask.Subject, error) {
	s, err := c.Equipped()
	if err != nil {
		return nil, err
	}
	s.Policy, s.Paths, err = run.Canonical(c.written, run.Resolvers{Files: byText, Programs: c.CanonicalProgram})
	if err != nil {
		return nil, InputErr(err)
	}
	return s.Without(n), nil
}
