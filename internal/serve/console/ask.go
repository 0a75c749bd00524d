package console

import (
	"context"
	"errors"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/ask"
)

// A Host is the service with the questions that pages ask of it. Who asks is
// answered what they may know.
type Host interface {
	service.Host
	// SomeAgents are those of Agents that q asks for; what it costs does not grow
	// with how many there are beside them.
	SomeAgents(ctx context.Context, c *service.Caller, q service.AgentQuery) ([]service.Agent, error)
	Agent
	Policies
	// ChangedServers are the MCP servers whose tools somebody has to accept.
	ChangedServers(ctx context.Context, c *service.Caller) ([]ask.ChangedServer, error)
	// Verify is whether the log of the tenant of c is what was recorded.
	Verify(ctx context.Context, c *service.Caller) (*ask.Verification, error)
	// Lanes tries what the host can keep programs from. It takes the right to
	// operate, and starts programs.
	Lanes(ctx context.Context, c *service.Caller) (*ask.LaneSurvey, error)
}

// Agent are questions about an installed agent, by its name; about one that is not
// there the answer is [service.ErrNotFound]. What is wrong with a question is an
// [ask.Error].
type Agent interface {
	Inspect(ctx context.Context, c *service.Caller, agent string) (*ask.Inspection, error)
	Holding(ctx context.Context, c *service.Caller, agent string) (*ask.Holding, error)
	Explain(ctx context.Context, c *service.Caller, agent string, q ask.Query) (*ask.Explanation, error)
}

// Policies are questions about the override of an installed agent. Who brings a
// text needs the right to operate; what is wrong in it is an [ask.TextError].
type Policies interface {
	Override(ctx context.Context, c *service.Caller, agent string) (*ask.Override, error)
	TryOverride(ctx context.Context, c *service.Caller, agent string, t ask.Trial) (*ask.Override, error)
	WhatIf(ctx context.Context, c *service.Caller, agent string, text []byte) (*ask.Forecast, error)
	Suggest(ctx context.Context, c *service.Caller, agent string) (*ask.Suggestion, error)
}

// unanswered is why a question has no answer that a page shows beside what it
// has; another error is returned.
func unanswered(err error) (string, error) {
	var text *ask.TextError
	var fault *ask.Error
	if errors.As(err, &text) || errors.As(err, &fault) {
		return err.Error(), nil
	}
	return "", err
}

// bundle finds an installed agent by its name.
func (c *console) bundle(ctx context.Context, caller *service.Caller, name string) (service.Agent, error) {
	if !whole(name, nameLetter) {
		return service.Agent{}, service.ErrNotFound
	}
	list, err := c.Host.SomeAgents(ctx, caller, service.AgentQuery{Name: name})
	if err == nil && len(list) == 0 {
		err = service.ErrNotFound
	}
	if err != nil {
		return service.Agent{}, err
	}
	return list[0], nil
}
