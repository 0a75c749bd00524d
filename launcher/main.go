package launcher

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/model/providers"
	"runloop.dev/rlp/internal/effect/model/remote"
	"runloop.dev/rlp/internal/engine/guest"
)

// modelHost is the argument by which a child is told to ask providers of models.
const modelHost = "model-host"

// isMain says that this program can be its own child processes.
var isMain atomic.Bool

// Main makes this program able to be the child processes of its launches, which
// compile agents, confine programs and ask providers of models: in those it does
// their work and does not return. It is the first call of main.
func Main() {
	isMain.Store(true)
	if status, child := child(os.Args); child {
		os.Exit(status)
	}
}

func child(args []string) (status int, is bool) {
	if status, is := guest.BeCompiler(args, os.Stdin, os.Stdout); is {
		return status, true
	}
	if len(args) != 2 || args[0] != "rlp" {
		return 0, false
	}
	switch args[1] {
	case lane.ConfineName:
		return lane.Confined(), true
	case modelHost:
		if err := remote.Serve(context.Background(), os.Stdin, os.Stdout, providers.New(providers.Options{})); err != nil {
			return StatusUnavailable, true
		}
		return StatusOK, true
	}
	return 0, false
}

// ownProgram is the file of this program.
func ownProgram() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the program's own file: %w", err)
	}
	if _, err := os.Stat(path); err != nil { // it was removed, or never had a name
		path = "/proc/self/exe"
	}
	return path, nil
}

// programs are the files that agents must leave as they are: this program, and
// what its children are.
func programs(self func() (string, error)) (list []string) {
	for _, find := range []func() (string, error){os.Executable, self} {
		if path, err := find(); err == nil && path != "" {
			if _, err := os.Lstat(path); err == nil {
				list = append(list, path)
			}
		}
	}
	return list
}
