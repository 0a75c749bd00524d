package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"runloop.dev/rlp/agents/sdk"
)

var execCommands = map[string]command{
	"exec":   {1, func(a []string) (string, error) { return run(sdk.ExecRequest{Argv: strings.Split(a[0], " ")}) }},
	"script": {1, func(a []string) (string, error) { return run(sdk.ExecRequest{Argv: []string{"/bin/sh", "-c", a[0]}}) }},
	"feed": {2, func(a []string) (string, error) {
		return run(sdk.ExecRequest{Argv: strings.Split(a[0], " "), Stdin: []byte(a[1])})
	}},
	"execin": {2, func(a []string) (string, error) {
		return run(sdk.ExecRequest{Dir: a[0], Argv: strings.Split(a[1], " ")})
	}},
	"execenv":   {2, execEnv},
	"exectime":  {2, execTimeout},
	"execflood": {2, execFlood},
}

// run is one program, and what came of it: exit code, both streams.
func run(r sdk.ExecRequest) (string, error) {
	e, err := sdk.ExecRun(r)
	if err != nil {
		var why *sdk.Error
		if errors.As(err, &why) {
			return "", fmt.Errorf("%w [%s]", err, why.Hint)
		}
		return "", err
	}
	text := fmt.Sprintf("exit %d", e.ExitCode)
	if e.TimedOut {
		text += " timed out"
	}
	for _, s := range [][]byte{e.Stdout, e.Stderr} {
		text += " | " + strings.TrimSpace(string(s))
	}
	return text, nil
}

// execEnv gives a program variables: "A=1 B=2". A value of the form secret:ID
// is the handle of that secret.
func execEnv(a []string) (string, error) {
	r := sdk.ExecRequest{Argv: strings.Split(a[1], " "), Env: map[string]string{}}
	for _, pair := range strings.Fields(a[0]) {
		name, value, _ := strings.Cut(pair, "=")
		if id, ok := strings.CutPrefix(value, "secret:"); ok {
			handle, err := sdk.SecretHandle(id)
			if err != nil {
				return "", err
			}
			value = handle
		}
		r.Env[name] = value
	}
	return run(r)
}

func execTimeout(a []string) (string, error) {
	d, err := time.ParseDuration(a[0])
	if err != nil {
		return "", err
	}
	return run(sdk.ExecRequest{Argv: []string{"/bin/sh", "-c", a[1]}, Timeout: d})
}

// execFlood says how much came of what was written.
func execFlood(a []string) (string, error) {
	e, err := sdk.ExecRun(sdk.ExecRequest{Argv: []string{"/bin/sh", "-c", a[0]}, Stdin: []byte(a[1])})
	return fmt.Sprintf("exit %d, %d and %d bytes", e.ExitCode, len(e.Stdout), len(e.Stderr)), err
}
