package compose

import (
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
