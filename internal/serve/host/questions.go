package host

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/auditlog"
	"runloop.dev/rlp/launcher/compose"
)

// Questions are those about agents and records that the console and MCP ask.
type Questions struct{ *Host }

// answer has a question of who answered, who needs the rights of may: they are asked
// before anything is looked at. What stands in its way that is not the question's
// fault is the operator's to know.
func answer[A any](
	ctx context.Context, h *Host, who *service.Caller, may service.Rights, find func(*compose.Runner) (A, error),
) (A, error) {
	var none A
	if !who.Can(may) {
		return none, service.ErrForbidden
	}
	if err := h.there(); err != nil {
		return none, h.unavailable(ctx, who, err)
	}
	as := h.as(who.Tenant, func(text string) {
		h.warn(ctx, who, slog.LevelWarn, "question", text)
	})
	if unused(h, who.Tenant) {
		dir, err := os.MkdirTemp("", "rlp-empty-home-")
		if err != nil {
			return none, h.unavailable(ctx, who, err)
		}
		defer os.RemoveAll(dir)
		as.StoreIn = dir
	}
	a, err := find(as)
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
func installed(a *compose.Runner, name string) (string, error) {
	at, err := a.Home()
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
func composed(a *compose.Runner, name string, f compose.Flags) (*compose.Composition, error) {
	path, err := installed(a, name)
	if err != nil {
		return nil, err
	}
	return a.Compose(path, f)
}

// subject is the subject of questions about c, as who may be told of it.
func (h Questions) subject(who *service.Caller, c *compose.Composition) (*ask.Subject, error) {
	if who.Can(service.Operate) {
		return c.Equipped()
	}
	return c.Told(h.names(who.Tenant, c.Bundle.Manifest.Agent.String()))
}

// Explain implements [console.Host] and [mcpserver.Host]. Without a run it is of a
// call of the agent as a tool. A run of what is not installed is explained from its
// records alone, to who may read the paths in them.
func (h Questions) Explain(
	ctx context.Context, who *service.Caller, agent string, q ask.Query,
) (*ask.Explanation, error) {
	return answer(ctx, h.Host, who, service.Read, func(a *compose.Runner) (*ask.Explanation, error) {
		var f compose.Flags
		if q.Run == "" {
			_, cfg, err := a.Settings()
			if err != nil {
				return nil, err
			}
			f.Profiles = []string{DoorGrant(cfg, service.MCP)}
		}
		q.Now = h.now()
		c, err := composed(a, agent, f)
		if q.Run != "" && errors.Is(err, service.ErrNotFound) && who.Can(service.Operate) {
			return auditlog.ExplainRecorded(ctx, a.Reader, q)
		}
		if err != nil {
			return nil, err
		}
		s, err := h.subject(who, c)
		if err != nil {
			return nil, err
		}
		return auditlog.Explain(ctx, a.Reader, s, q)
	})
}

// Holding implements [console.Host].
func (h Questions) Holding(ctx context.Context, who *service.Caller, agent string) (*ask.Holding, error) {
	return answer(ctx, h.Host, who, service.Read, func(a *compose.Runner) (*ask.Holding, error) {
		c, err := composed(a, agent, compose.Flags{})
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

// Inspect implements [console.Host].
func (h Questions) Inspect(ctx context.Context, who *service.Caller, agent string) (*ask.Inspection, error) {
	return answer(ctx, h.Host, who, service.Read, func(a *compose.Runner) (*ask.Inspection, error) {
		path, err := installed(a, agent)
		if err != nil {
			return nil, err
		}
		b, err := bundles.Open(path)
		if err != nil {
			return nil, err
		}
		d, err := ask.Inspect(b, a.Self)
		if err != nil || who.Can(service.Operate) {
			return d, err
		}
		return d.Without(h.places()), nil
	})
}

// Verify implements [console.Host].
func (h Questions) Verify(ctx context.Context, who *service.Caller) (*ask.Verification, error) {
	return answer(ctx, h.Host, who, service.Read, func(a *compose.Runner) (*ask.Verification, error) {
		v, err := auditlog.Verify(ctx, a.Reader, auditlog.Check{})
		if err != nil || who.Can(service.Operate) {
			return v, err
		}
		return v.Without(), nil
	})
}

// ChangedServers implements [console.Host].
func (h Questions) ChangedServers(ctx context.Context, who *service.Caller) ([]ask.ChangedServer, error) {
	return answer(ctx, h.Host, who, service.Read, func(a *compose.Runner) ([]ask.ChangedServer, error) {
		at, err := a.Home()
		if err != nil {
			return nil, err
		}
		return compose.ChangedServers(at)
	})
}
