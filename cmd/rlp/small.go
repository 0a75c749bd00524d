//go:build slim

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/companion"
	"runloop.dev/rlp/internal/home"
	"runloop.dev/rlp/internal/jail"
	"runloop.dev/rlp/launcher"
)

// The small program launches agents that ask for files, time and variables
// alone. Everything else is the whole program's, which lies at the end of this
// one's file: this process becomes it.

// commands are those that the small program has.
func (a *app) commands() []*cobra.Command { return []*cobra.Command{a.launchCommand()} }

// elsewhere hands every command over but launch.
func (a *app) elsewhere() (code int, done bool) {
	if len(a.args) > 0 && a.args[0] == "launch" {
		return 0, false
	}
	dir, err := home.Locate("", a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
	if err != nil {
		dir = ""
	}
	return a.finish(a.become(dir)), true
}

// fit hands over the launch of an agent that asks for more than the small
// program has, of one that must make room for its journal first, and what is
// no launch.
func (a *app) fit(c *composition, dryRun bool) error {
	more := slices.ContainsFunc(c.policy.Base, func(e caps.Entry) bool {
		switch e.Grant.Family {
		case caps.FS, caps.Time, caps.Env:
			return false
		}
		return true
	})
	few, err := fewJournals(c.home)
	if err == nil && !more && few && !dryRun && len(c.bundle.Tools) == 0 {
		return nil
	}
	return a.become(c.home.Dir())
}

// attach has nothing to attach: no agent with tools comes here.
func (a *app) attach(*composition, *launcher.Spec) error { return nil }

// printTools is the whole program's, as the plan is.
func (a *app) printTools([]launcher.Attachment) {}

// printPlan is the whole program's.
func (a *app) printPlan(launcher.Policy) error { return a.become("") }

// become makes this process the whole program, which may be kept in the home
// dir. It returns only what went wrong.
func (a *app) become(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return unavailable(err)
	}
	f, err := os.Open(self)
	if err != nil {
		return unavailable(err)
	}
	defer f.Close()
	second, err := companion.Find(f)
	if errors.Is(err, companion.ErrNone) {
		return unavailable(errors.New("this file has the small program only; build rlp with make, or go build ./cmd/rlp"))
	}
	if err != nil {
		return unavailable(err)
	}
	path, ok := extract(second, dir)
	if !ok {
		memory, err := second.Memory()
		if err != nil {
			return unavailable(err)
		}
		defer memory.Close()
		path = memory.Name()
	}
	env := slices.DeleteFunc(slices.Clone(a.env), func(kv string) bool { return strings.HasPrefix(kv, programVariable+"=") })
	env = append(env, programVariable+"="+self)
	return unavailable(syscall.Exec(path, append([]string{"rlp"}, a.args...), env))
}

// extract puts the whole program into the cache of the home dir, if that is a
// home already, and one that is its owner's alone.
func extract(second *companion.Companion, dir string) (path string, ok bool) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", false
	}
	h, err := home.Open(dir, home.DefaultTenant)
	if err != nil {
		return "", false
	}
	path, err = second.Extract(filepath.Join(h.Cache(), "bin"))
	return path, err == nil
}

func unavailable(err error) error {
	return &statusError{launcher.StatusUnavailable, fmt.Errorf("starting the whole program: %w", err)}
}

// components are none: no agent that asks for any comes here.
func (a *app) components(context.Context, *composition, *launcher.Spec) (release func() error, err error) {
	return func() error { return nil }, nil
}

// execFit has nothing to say: no agent that asks for exec comes here.
func (a *app) execFit(context.Context, *composition, *launcher.Spec) (release func() error, err error) {
	return func() error { return nil }, nil
}

// shared is nothing: no agent that launches others comes here.
type shared struct{}

// execLane is the whole program's.
type execLane any

// canonicalProgram is the path of a program without links.
func (c *composition) canonicalProgram(written string) (string, bool, error) {
	return jail.Canonical(written)
}
