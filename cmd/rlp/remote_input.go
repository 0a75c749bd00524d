package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/serve/client"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// An inputLate says that the input of a launch elsewhere did not come in time:
// the service was not asked, and has no record.
type inputLate struct{ wall time.Duration }

func (e *inputLate) Error() string {
	return fmt.Sprintf("the run passed limits.wall_time_ms = %d while it waited for its input; the service was not asked",
		e.wall.Milliseconds())
}

// report is that of a run which never began.
func (e *inputLate) report() *launcher.Report {
	r := &launcher.Report{Outcome: launcher.Timeout, ExitCode: launcher.StatusTimeout, Message: e.Error()}
	r.Usage.WallMS = e.wall.Milliseconds()
	return r
}

// sendInput reads the input into q. The wait for it is part of the run's wall
// time. Of that only what --limit says is known here: what is left of it goes to
// the service; without one the default bounds the wait.
func sendInput(ctx context.Context, a *app, h home.Home, flag string, q *client.Request) error {
	data, read, err := a.input(h, flag)
	if err != nil || read == nil {
		q.InputBase64 = data
		return err
	}
	wall, asked := time.Duration(run.DefaultWallMS)*time.Millisecond, ""
	for key, n := range q.Limits {
		if l, v, err := caps.ParseLimit(key, n); err == nil && l == caps.WallTimeMS {
			wall, asked = time.Duration(min(v, 1<<40))*time.Millisecond, key
		}
	}
	began := time.Now()
	waiting, cancel := context.WithTimeout(ctx, wall)
	defer cancel()
	data, err = read(waiting)
	switch {
	case err == nil && len(data) > compose.MaxInput:
		return inputErr(fmt.Errorf("--input: more than %d MiB", compose.MaxInput>>20))
	case err == nil:
	case ctx.Err() != nil:
		return &statusError{Status: launcher.StatusCancelled, Err: errors.New("interrupted before the guest began")}
	case waiting.Err() != nil:
		return &inputLate{wall}
	default:
		return inputErr(fmt.Errorf("reading --input: %w", err))
	}
	if q.InputBase64 = data; asked != "" {
		q.Limits[asked] = max((wall - time.Since(began)).Milliseconds(), 0)
	}
	return nil
}

// notSent says on stderr what narrows this agent's launches here and does not
// reach the service, which reads its own files.
//
// That of the home's own socket reads these very files: what is said there is what
// variables of this invocation change.
func notSent(a *app, h home.Home, agent string, own bool) error {
	cfg, err := config.Load(h.Config(), a.env)
	if err != nil {
		return inputErr(err)
	}
	var applied config.Config
	if own {
		if applied, err = config.Load(h.Config(), nil); err != nil {
			return inputErr(err)
		}
	}
	tell := func(format string, args ...any) {
		a.say("not sent, for the service reads its own files (where they are these, it applies them): " +
			printable(fmt.Sprintf(format, args...)))
	}
	if name := cfg.Security.Profile; name != applied.Security.Profile {
		tell("security.profile = %q (RUNLOOP__SECURITY__PROFILE, or %s); --profile %s sends it", name, h.Config(), name)
	}
	if cfg.Limits != applied.Limits {
		tell("[limits] of the settings (RUNLOOP__LIMITS__*, or %s); --limit sends one", h.Config())
	}
	for _, id := range []string{"_default", agent} {
		if id == "" || own {
			continue
		}
		switch _, err := os.Lstat(h.Override(id)); {
		case err == nil:
			tell("the override %s; --override sends it", h.Override(id))
		case !errors.Is(err, fs.ErrNotExist):
			return inputErr(fmt.Errorf("looking for overrides: %w", err))
		}
	}
	return nil
}
