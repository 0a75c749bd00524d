package host

import (
	"context"
	"errors"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/auditlog"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/draft"
	"runloop.dev/rlp/launcher/knowledge"
	"runloop.dev/rlp/launcher/lanes"
	"runloop.dev/rlp/launcher/run"
)

// Override implements [console.Host].
func (h Questions) Override(ctx context.Context, who *service.Caller, agent string) (*ask.Override, error) {
	return answer(ctx, h.Host, who, service.Read, func(r *compose.Runner) (*ask.Override, error) {
		path, err := installed(r, agent)
		if err != nil {
			return nil, err
		}
		o, err := draft.Override(r.Reader, path, ask.Trial{})
		if err != nil || who.Can(service.Operate) {
			return o, err
		}
		return o.Without(h.names(who.Tenant, agent)), nil
	})
}

// TryOverride implements [console.Host]. A text is a policy of the caller's own,
// whose paths are looked up on this host, and that takes the right to operate.
func (h Questions) TryOverride(
	ctx context.Context, who *service.Caller, agent string, t ask.Trial,
) (*ask.Override, error) {
	return answer(ctx, h.Host, who, service.Read|service.Operate, func(r *compose.Runner) (*ask.Override, error) {
		path, err := installed(r, agent)
		if err != nil {
			return nil, err
		}
		return draft.Override(r.Reader, path, t)
	})
}

// WhatIf implements [console.Host].
func (h Questions) WhatIf(
	ctx context.Context, who *service.Caller, agent string, text []byte,
) (*ask.Forecast, error) {
	const may = service.Read | service.Operate
	return answer(ctx, h.Host, who, may, func(r *compose.Runner) (f *ask.Forecast, err error) {
		err = auditlog.With(ctx, r.Reader, auditlog.Filter{Agent: agent}, h.now(), func(ctx context.Context, s *kb.Store,
			filter kb.Filter,
		) error {
			tried := compose.Flags{Overrides: []string{"-"}}
			f, err = draft.Recorded{Reader: r.Reader, Store: s}.WhatIf(ctx, filter, tried, text)
			return err
		})
		return f, err
	})
}

// Suggest implements [console.Host]: the override of what the agent used.
func (h Questions) Suggest(ctx context.Context, who *service.Caller, agent string) (*ask.Suggestion, error) {
	return answer(ctx, h.Host, who, service.Read, func(r *compose.Runner) (made *ask.Suggestion, err error) {
		path, err := installed(r, agent)
		if err != nil {
			return nil, err
		}
		b, err := r.OwnBundle(path)
		if err != nil {
			return nil, err
		}
		err = auditlog.With(ctx, r.Reader, auditlog.Filter{}, h.now(), func(ctx context.Context, s *kb.Store,
			_ kb.Filter,
		) error {
			w := ask.Wanted{Override: true, Others: !who.Can(service.Operate)}
			made, err = draft.Recorded{Reader: r.Reader, Store: s}.Suggest(ctx, []ask.Used{{Bundle: b, Name: agent}}, path, w)
			return err
		})
		if err == nil && !who.Can(service.Operate) && h.names(who.Tenant, agent).Holds(made.Policy) {
			return nil, &ask.Error{Status: run.StatusPolicy, Err: errors.New(
				"what it used lies where only those who operate this host are told")}
		}
		return made, err
	})
}

// Lanes implements [console.Host]: it starts programs.
func (h Questions) Lanes(ctx context.Context, who *service.Caller) (*ask.LaneSurvey, error) {
	return answer(ctx, h.Host, who, service.Read|service.Operate, func(r *compose.Runner) (*ask.LaneSurvey, error) {
		doc, err := lanes.Survey(ctx, r, lanes.Names())
		return &doc, err
	})
}

// Search implements [mcpserver.Host].
func (h Questions) Search(ctx context.Context, who *service.Caller, q kb.Query) ([]ask.Hit, error) {
	return answer(ctx, h.Host, who, service.Read, func(r *compose.Runner) ([]ask.Hit, error) {
		hits, err := knowledge.Search(ctx, r.Reader, q)
		if errors.Is(err, kb.ErrDomain) || errors.Is(err, kb.ErrInvalid) {
			err = &ask.Error{Status: run.StatusUsage, Err: err}
		}
		return hits, err
	})
}
