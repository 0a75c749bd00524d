//go:build slim

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/companion"
	"runloop.dev/rlp/internal/home"
	"runloop.dev/rlp/internal/jail"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/run"
)

// execute reads the arguments of a launch by the very flags that the whole
// program defines. That one says what is wrong with them, and how to write them.
func (a *app) execute(ctx context.Context) error {
	f, fs, err := a.parseLaunch()
	if err != nil {
		return a.become(a.usualHome())
	}
	if err := oneBundle(fs.Args(), fs.ArgsLenAtDash()); err != nil {
		return err
	}
	return a.launch(ctx, fs.Arg(0), fs.Args()[1:], f)
}

// elsewhere hands every command over but launch.
func (a *app) elsewhere() (code int, done bool) {
	if len(a.args) > 0 && a.args[0] == "launch" {
		return 0, false
	}
	return a.finish(a.become(a.usualHome())), true
}

// usualHome is the home of an invocation that says nothing of one, "" where
// there is none.
func (a *app) usualHome() string {
	dir, err := home.Locate("", a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
	if err != nil {
		return ""
	}
	return dir
}

// fit hands over the launch of an agent that asks for more than the small
// program has, of one that must make room for its journal first or tell others
// of the log when it ends, and what is no launch.
func (a *app) fit(c *composition, dryRun bool) error {
	more := slices.ContainsFunc(c.policy.Base, func(e caps.Entry) bool {
		switch e.Grant.Family {
		case caps.FS, caps.Time, caps.Env:
			return false
		}
		return true
	})
	few, err := true, error(nil)
	if known, owned := a.storeKnown(c); known.Changed && !owned {
		more = true // only who opens the store knows more
	}
	if rand.IntN(16) == 0 {
		few, err = fewJournals(c.home)
	}
	a.hear()
	if err == nil && !more && few && !dryRun && len(c.bundle.Tools)+len(c.config.Audit.Publish) == 0 {
		return nil
	}
	return a.become(c.home.Dir())
}

// begin has nobody to begin it for: the whole program is the one that helps others.
func (a *app) begin(*composition, launchFlags) error { return nil }

// shelf is what a helper keeps open.
type shelf struct{}

// attach has nothing to attach: no agent with tools comes here.
func (a *app) attach(*composition, *run.Spec) error { return nil }

// printTools is the whole program's, as the plan is.
func (a *app) printTools([]launcher.Attachment) {}

// printPlan is the whole program's.
func (a *app) printPlan(launcher.Policy, launcher.Paths) error { return a.become("") }

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
	env := slices.DeleteFunc(slices.Clone(a.env), func(kv string) bool { return strings.HasPrefix(kv, programVariable+"=") })
	env = append(env, programVariable+"="+self)
	args := append([]string{"rlp"}, a.args...)
	if path, ok := extract(second, dir); ok {
		if err := syscall.Exec(path, args, env); !errors.Is(err, syscall.EACCES) { // no program starts from some volumes
			return unavailable(err)
		}
	}
	memory, err := second.Memory()
	if err != nil {
		return unavailable(err)
	}
	defer memory.Close()
	return unavailable(syscall.Exec(memory.Name(), args, env))
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
func (a *app) components(context.Context, *composition, *run.Spec, *equipment) error { return nil }

// admit and ended have nothing to do: nothing is kept.
func (k *kept) admit(context.Context, *composition) {}
func (k *kept) ended(*composition)                  {}

// execFit has nothing to say: no agent that asks for exec comes here.
func (a *app) execFit(context.Context, *composition, *run.Spec) (release func() error, err error) {
	return func() error { return nil }, nil
}

// shared is nothing: no agent that launches others comes here.
type shared struct{}

// execLane is the whole program's.
type execLane any

// runSecrets are the whole program's.
type runSecrets any

// canonicalProgram is the path of a program without links.
func (c *composition) canonicalProgram(written string) (jail.Resolved, error) {
	return jail.Canonical(written)
}
