package main

import (
	"context"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
)

// subject is what questions about the agent of c are asked of.
func (c *composition) subject() *ask.Subject {
	s := &ask.Subject{
		Bundle: c.bundle, Policy: c.policy, Paths: c.paths, Params: c.params, Unset: c.unset, Findings: c.findings,
		Override: c.home.Override(c.bundle.Manifest.Agent.String()), Relaxed: c.relaxed(),
		Programs: c.canonicalProgram,
		Domains:  append(policy.BuiltinDomains(), c.config.KB.Domains...),
	}
	if len(c.programs) > 0 {
		s.Execs = c.programs[0]
	}
	return s
}

// equipped is the subject with the tools of its bundle.
func (c *composition) equipped() (s *ask.Subject, err error) {
	s = c.subject()
	if s.Tools, err = c.tools(); err != nil {
		return nil, inputErr(err)
	}
	return s, nil
}

// explanation is why the next launch of c, or the run that q names, would be
// answered as it is.
func (a *app) explanation(ctx context.Context, s *ask.Subject, q ask.Query) (e *ask.Explanation, err error) {
	if q.Run == "" {
		return ask.Explain(s, q)
	}
	err = a.withStore(ctx, auditFlags{run: q.Run}, func(ctx context.Context, log *kb.Store, f kb.Filter) error {
		q.Run = f.Run
		e, err = ask.ExplainRun(ctx, log, s, q)
		return err
	})
	return e, err
}
