package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"runloop.dev/rlp/internal/service"
	"runloop.dev/rlp/launcher"
)

// ask does a command and reads what it prints into into. A command that found
// something (status 1) has answered.
func (c *console) ask(ctx context.Context, caller *service.Caller, stdin []byte, into any, args ...string) error {
	out, err := c.Host.Ask(ctx, caller, stdin, args...)
	var ask *service.AskError
	if errors.As(err, &ask) && ask.Status == launcher.StatusFinding && len(out) > 0 {
		err = nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("reading what rlp %s printed: %w", strings.Join(args, " "), err)
	}
	return nil
}

// told is what a command says that it cannot do; another error is returned.
func told(err error) (string, error) {
	var ask *service.AskError
	if errors.As(err, &ask) {
		return strings.TrimPrefix(strings.TrimSpace(ask.Stderr), "rlp: "), nil
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
