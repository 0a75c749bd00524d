package main

import (
	"bytes"
	"context"
	"errors"
	"io"

	"runloop.dev/rlp/internal/serve/host"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/auditlog"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/draft"
	"runloop.dev/rlp/launcher/knowledge"
	"runloop.dev/rlp/launcher/lanes"
)

// questions are those that commands answer, too.
type questions struct {
	*host.Host
	app *app
}

// of is an invocation that reads what r does.
func (h questions) of(r *compose.Runner) *app {
	env := environment{env: r.Env, stdin: bytes.NewReader(nil), stdout: io.Discard, stderr: saying(r.Say), kept: r.Kept}
	return &app{
		environment: env, json: true, quiet: true, homeFlag: r.HomeDir, homeSet: true, tenant: r.Tenant,
		homeThere: r.HomeThere,
	}
}

// saying passes on what is printed.
type saying func(text string)

func (s saying) Write(text []byte) (int, error) {
	s(string(text))
	return len(text), nil
}

// Override implements [console.Host].
func (h questions) Override(ctx context.Context, who *service.Caller, agent string) (*ask.Override, error) {
	return host.Answer(ctx, h.Host, who, service.Read, func(r *compose.Runner) (*ask.Override, error) {
		a := h.of(r)
		path, err := host.Installed(r, agent)
		if err != nil {
			return nil, err
		}
		o, err := draft.Override(a.reader(), path, ask.Trial{})
		if err != nil || who.Can(service.Operate) {
			return o, err
		}
		return o.Without(h.Places()), nil
	})
}

// TryOverride implements [console.Host]. A text is a policy of the caller's own,
// whose paths are looked up on this host, and that takes the right to operate.
func (h questions) TryOverride(
	ctx context.Context, who *service.Caller, agent string, t ask.Trial,
) (*ask.Override, error) {
	return host.Answer(ctx, h.Host, who, service.Read|service.Operate, func(r *compose.Runner) (*ask.Override, error) {
		a := h.of(r)
		path, err := host.Installed(r, agent)
		if err != nil {
			return nil, err
		}
		return draft.Override(a.reader(), path, t)
	})
}

// WhatIf implements [console.Host].
func (h questions) WhatIf(
	ctx context.Context, who *service.Caller, agent string, text []byte,
) (*ask.Forecast, error) {
	const may = service.Read | service.Operate
	return host.Answer(ctx, h.Host, who, may, func(r *compose.Runner) (f *ask.Forecast, err error) {
		a := h.of(r)
		err = a.withStore(ctx, auditlog.Filter{Agent: agent}, func(ctx context.Context, s *kb.Store, filter kb.Filter) error {
			tried := compose.Flags{Overrides: []string{"-"}}
			f, err = draft.Recorded{Reader: a.reader(), Store: s}.WhatIf(ctx, filter, tried, text)
			return err
		})
		return f, err
	})
}

// Suggest implements [console.Host]: the override of what the agent used.
func (h questions) Suggest(ctx context.Context, who *service.Caller, agent string) (*ask.Suggestion, error) {
	return host.Answer(ctx, h.Host, who, service.Read, func(r *compose.Runner) (made *ask.Suggestion, err error) {
		a := h.of(r)
		path, err := host.Installed(r, agent)
		if err != nil {
			return nil, err
		}
		b, err := a.openBundle(path)
		if err != nil {
			return nil, err
		}
		err = a.withStore(ctx, auditlog.Filter{}, func(ctx context.Context, s *kb.Store, _ kb.Filter) error {
			w := ask.Wanted{Override: true, Others: !who.Can(service.Operate)}
			made, err = draft.Recorded{Reader: a.reader(), Store: s}.Suggest(ctx, []ask.Used{{Bundle: b, Name: agent}}, path, w)
			return err
		})
		if err == nil && !who.Can(service.Operate) && h.Places().Holds(made.Policy) {
			return nil, errors.New("what it used lies in the home, which only those who operate this host are told")
		}
		return made, err
	})
}

// Lanes implements [console.Host]: it starts programs.
func (h questions) Lanes(ctx context.Context, who *service.Caller) (*ask.LaneSurvey, error) {
	return host.Answer(ctx, h.Host, who, service.Read|service.Operate, func(r *compose.Runner) (*ask.LaneSurvey, error) {
		doc, err := lanes.Survey(ctx, r, lanes.Names())
		return &doc, err
	})
}

// Search implements [mcpserver.Host].
func (h questions) Search(ctx context.Context, who *service.Caller, q kb.Query) ([]ask.Hit, error) {
	return host.Answer(ctx, h.Host, who, service.Read, func(r *compose.Runner) ([]ask.Hit, error) {
		hits, err := knowledge.Search(ctx, r.Reader, q)
		if errors.Is(err, kb.ErrDomain) || errors.Is(err, kb.ErrInvalid) {
			err = &ask.Error{Status: launcher.StatusUsage, Err: err}
		}
		return hits, err
	})
}
