//go:build !slim

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"runloop.dev/rlp/internal/companion"
	"runloop.dev/rlp/internal/resident"
	"runloop.dev/rlp/launcher"
)

// launchFor does one launch for a client: the very same invocation, with what
// is the client's in the place of what is this process's.
func (a *app) launchFor(ctx context.Context, call *resident.Call, s invoker) resident.Outcome {
	s.call = call
	env := environment{args: call.Args, env: call.Env, stdin: call.Stdin, stdout: call.Stdout, stderr: call.Stderr, invoker: &s, kept: a.kept}
	if len(call.Args) == 0 || call.Args[0] != "launch" {
		return resident.Outcome{Declined: "no launch"}
	}
	status := invoke(ctx, env)
	return resident.Outcome{Status: status, Declined: s.declined}
}

// front is the file that this program came out of, which clients run; "" if it
// is that file itself. One that has other contents is none.
func (a *app) front() (string, error) {
	path := a.getenv(programVariable)
	if !filepath.IsAbs(path) {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", &statusError{launcher.StatusUnavailable, err}
	}
	defer f.Close()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", &statusError{launcher.StatusUnavailable, err}
	}
	defer self.Close()
	second, err := companion.Find(f)
	if errors.Is(err, companion.ErrNone) {
		return "", nil
	}
	same := false
	if err == nil {
		same, err = second.Is(self)
	}
	if err != nil {
		return "", &statusError{launcher.StatusUnavailable, err}
	}
	if !same {
		return "", &statusError{launcher.StatusUnavailable, fmt.Errorf("%s has been replaced; start rlp daemon again", path)}
	}
	return path, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
