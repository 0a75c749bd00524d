package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/serve/daemon"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// environment is everything that the program takes from the process; no other
// file reads the process's own.
type environment struct {
	args   []string
	env    []string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	invoker   *invoker      // nil: for this process
	kept      *compose.Kept // nil: this process launches one agent
	listening func()        // waits until signals are heard; nil: whoever made this hears them
}

func (e environment) getenv(name string) string {
	v, _ := e.lookup(name)
	return v
}

func (e environment) lookup(name string) (string, bool) {
	for _, kv := range e.env {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// app is one invocation: the environment and the flags that every command has.
type app struct {
	environment
	json, quiet, verbose bool
	homeFlag, tenant     string
	homeSet              bool
	homeAsked            string // the home that is not there, and an empty one is looked into instead; "": none
	madeUp, unused       string // an empty folder that is looked into, and the one it stands for; "": none
	live                 bool   // what a program prints passes through, all of it
	launching            bool   // what is printed as JSON is a report
	guestOut             *witness
	beside               *run.Beside  // stderr, which lines of a guest's or program's share; nil: it is as it is
	warned               []string     // what the operator is told behind the end of a run, each once
	homeThere            func() error // why the home is not to be used now; nil: whoever invoked this named it
}

// hear waits until signals are heard.
func (a *app) hear() {
	if a.listening != nil {
		a.listening()
	}
}

// register defines the flags that every command has.
func (a *app) register(f *pflag.FlagSet) {
	f.BoolVar(&a.json, "json", false, "print one JSON document (or NDJSON) on stdout")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print nothing but results and errors")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "print logs and warnings on stderr")
	f.StringVar(&a.homeFlag, "home", "", "the home folder (default $RUNLOOP_HOME, else ~/.runloop)")
	f.StringVar(&a.tenant, "tenant", home.DefaultTenant, "the tenant whose store, agents and log are used")
}

// printJSON prints v as one document on stdout.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// color reports whether w may be given colour: a terminal, and NO_COLOR unset.
func (a *app) color(w io.Writer) bool {
	if v, set := a.lookup("NO_COLOR"); set && v != "" {
		return false
	}
	return isTerminal(w)
}

func isTerminal(w any) bool {
	if p, ok := w.(throughPager); ok {
		w = p.terminal
	}
	if s, ok := w.(*daemon.Stream); ok {
		w = s.File()
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && isTTY(f)
}

var errSilent = errors.New("already told")

// say prints a warning at once.
func (a *app) say(w string) { fmt.Fprintln(a.stderr, fitted(a.stderr, "rlp: "+printableLines(w))) }

// warnOnce keeps a warning, once in an invocation: it is printed when the run is
// over, behind the line that says how.
func (a *app) warnOnce(w string) {
	if !slices.Contains(a.warned, w) {
		a.warned = append(a.warned, w)
	}
}

// watching is where logs are shown to a person; nil: nobody asked for them.
func (a *app) watching() io.Writer {
	if a.verbose {
		return a.stderr
	}
	return nil
}

// closeKept gives up all that is kept for launches. A log that could not be closed
// is 74.
func (a *app) closeKept() error {
	if err := a.kept.Close(); err != nil {
		return &statusError{Status: launcher.StatusAudit, Err: err}
	}
	return nil
}

// An invoker is the process for which the daemon does an invocation: what
// any other invocation takes from its own process, that one takes from here.
type invoker struct {
	call *daemon.Call
	dir  string      // the client's folder, as the client would write it
	home string      // the one that is served
	own  environment // of the helper's process

	declined string // why the client has to launch by itself
}
