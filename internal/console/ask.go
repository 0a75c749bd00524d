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

// installed is an agent as rlp agent list has it.
type installed struct {
	Agent   string `json:"agent"`
	Version string `json:"version"`
	Path    string `json:"path"`
	Error   string `json:"error"`
}

// bundle finds an installed agent by its name.
func (c *console) bundle(ctx context.Context, caller *service.Caller, name string) (installed, error) {
	if !whole(name, nameLetter) {
		return installed{}, service.ErrNotFound
	}
	var list []installed
	if err := c.ask(ctx, caller, nil, &list, "agent", "list"); err != nil {
		return installed{}, err
	}
	for _, a := range list {
		if a.Agent == name {
			return a, nil
		}
	}
	return installed{}, service.ErrNotFound
}
