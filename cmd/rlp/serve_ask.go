package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"runloop.dev/rlp/internal/base/ident"
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

// questions are what the service is asked beside launches. Who operates is told
// all; others are told nothing of where the home is, or of what the host keeps for
// itself.
type questions struct{ *host }

// answer has a question of who answered, who needs the rights of may: they are asked
// before anything is looked at. What stands in its way that is not the question's
// fault is the operator's to know.
func answer[A any](
	ctx context.Context, h *host, who *service.Caller, may service.Rights, find func(*app) (A, error),
) (A, error) {
	var none A
	if !who.Can(may) {
		return none, service.ErrForbidden
	}
	if err := h.held.there(); err != nil {
		return none, h.unavailable(ctx, who, err)
	}
	var said bytes.Buffer
	a, err := find(h.as(who.Tenant, &said))
	h.warn(ctx, who, slog.LevelWarn, "question", said.String())
	var fault *ask.Error
	var text *ask.TextError
	switch {
	case err == nil && ctx.Err() == nil:
		return a, nil
	case ctx.Err() != nil:
		return none, ctx.Err()
	case errors.As(err, &text):
		return none, text
	case errors.As(err, &fault) && !fault.OfHost, errors.Is(err, service.ErrNotFound):
		return none, err
	}
	return none, h.unavailable(ctx, who, err)
}

// installed is where an installed agent of the tenant of a lies.
func installed(a *app, name string) (string, error) {
	at, err := a.home()
	if err != nil {
		return "", err
	}
	if _, err := ident.ParseAgent(name); err != nil {
		return "", service.ErrNotFound
	}
	path := filepath.Join(at.Agents(), name)
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir():
		return "", service.ErrNotFound
	case err != nil:
		return "", err
	}
	return path, nil
}

// composed is an installed agent as flags would have it launched.
func (h questions) composed(a *app, name string, f compose.Flags) (*compose.Composition, error) {
	path, err := installed(a, name)
	if err != nil {
		return nil, err
	}
	return a.compose(path, f)
}

// subject is the subject of questions about c, as who may be told of it.
func (h questions) subject(who *service.Caller, c *compose.Composition) (*ask.Subject, error) {
	s, err := c.Equipped()
	if err != nil || who.Can(service.Operate) {
		return s, err
	}
	return s.Without(h.places()), nil
}

// Explain implements [console.Host] and [mcpserver.Host]. Without a run it is of a
// call of the agent as a tool.
func (h questions) Explain(
	ctx context.Context, who *service.Caller, agent string, q ask.Query,
) (*ask.Explanation, error) {
	return answer(ctx, h.host, who, service.Read, func(a *app) (*ask.Explanation, error) {
		var f compose.Flags
		if q.Run == "" {
			_, cfg, err := a.settings()
			if err != nil {
				return nil, err
			}
			f.Profiles = []string{doorGrant(&compose.Composition{Config: cfg}, service.MCP)}
		}
		c, err := h.composed(a, agent, f)
		if err != nil {
			return nil, err
		}
		s, err := h.subject(who, c)
		if err != nil {
			return nil, err
		}
		q.Now = time.Now()
		return a.explanation(ctx, s, q)
	})
}

// Holding implements [console.Host].
func (h questions) Holding(ctx context.Context, who *service.Caller, agent string) (*ask.Holding, error) {
	return answer(ctx, h.host, who, service.Read, func(a *app) (*ask.Holding, error) {
		c, err := h.composed(a, agent, compose.Flags{})
		if err != nil {
			return nil, err
		}
		s, err := h.subject(who, c)
		if err != nil {
			return nil, err
		}
		return ask.Show(s)
	})
}

// Override implements [console.Host].
func (h questions) Override(ctx context.Context, who *service.Caller, agent string) (*ask.Override, error) {
	return answer(ctx, h.host, who, service.Read, func(a *app) (*ask.Override, error) {
		path, err := installed(a, agent)
		if err != nil {
			return nil, err
		}
		o, err := draft.Override(a.reader(), path, ask.Trial{})
		if err != nil || who.Can(service.Operate) {
			return o, err
		}
		return o.Without(h.places()), nil
	})
}

// TryOverride implements [console.Host]. A text is a policy of the caller's own,
// whose paths are looked up on this host, and that takes the right to operate.
func (h questions) TryOverride(
	ctx context.Context, who *service.Caller, agent string, t ask.Trial,
) (*ask.Override, error) {
	return answer(ctx, h.host, who, service.Read|service.Operate, func(a *app) (*ask.Override, error) {
		path, err := installed(a, agent)
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
	return answer(ctx, h.host, who, service.Read|service.Operate, func(a *app) (f *ask.Forecast, err error) {
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
	return answer(ctx, h.host, who, service.Read, func(a *app) (made *ask.Suggestion, err error) {
		path, err := installed(a, agent)
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
		if err == nil && !who.Can(service.Operate) && h.places().Holds(made.Policy) {
			return nil, errors.New("what it used lies in the home, which only those who operate this host are told")
		}
		return made, err
	})
}

// Inspect implements [console.Host].
func (h questions) Inspect(ctx context.Context, who *service.Caller, agent string) (*ask.Inspection, error) {
	return answer(ctx, h.host, who, service.Read, func(a *app) (*ask.Inspection, error) {
		path, err := installed(a, agent)
		if err != nil {
			return nil, err
		}
		b, err := a.openBundle(path)
		if err != nil {
			return nil, err
		}
		d, err := ask.Inspect(b, selfPath)
		if err != nil || who.Can(service.Operate) {
			return d, err
		}
		return d.Without(h.places()), nil
	})
}

// Verify implements [console.Host].
func (h questions) Verify(ctx context.Context, who *service.Caller) (*ask.Verification, error) {
	return answer(ctx, h.host, who, service.Read, func(a *app) (*ask.Verification, error) {
		v, err := auditlog.Verify(ctx, a.reader(), auditlog.Check{})
		if err != nil || who.Can(service.Operate) {
			return v, err
		}
		return v.Without(), nil
	})
}

// Lanes implements [console.Host]: it starts programs.
func (h questions) Lanes(ctx context.Context, who *service.Caller) (*ask.LaneSurvey, error) {
	return answer(ctx, h.host, who, service.Read|service.Operate, func(a *app) (*ask.LaneSurvey, error) {
		doc, err := lanes.Survey(ctx, a.runner(), lanes.Names())
		return &doc, err
	})
}

// Search implements [mcpserver.Host].
func (h questions) Search(ctx context.Context, who *service.Caller, q kb.Query) ([]ask.Hit, error) {
	return answer(ctx, h.host, who, service.Read, func(a *app) ([]ask.Hit, error) {
		hits, err := knowledge.Search(ctx, a.reader(), q)
		if errors.Is(err, kb.ErrDomain) || errors.Is(err, kb.ErrInvalid) {
			err = &ask.Error{Status: launcher.StatusUsage, Err: err}
		}
		return hits, err
	})
}
