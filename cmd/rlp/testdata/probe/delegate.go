package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"runloop.dev/rlp/agents/sdk"
)

// given are the commands of a probe that has no arguments: a JSON list on stdin,
// which is how another agent tells it what to do.
func given() []string {
	text, err := io.ReadAll(os.Stdin)
	var args []string
	if err != nil || json.Unmarshal(text, &args) != nil {
		return nil
	}
	return args
}

// delegateCommands launch other agents.
var delegateCommands = map[string]command{
	// delegate AGENT INPUT has the agent do what INPUT says.
	"delegate": {2, func(a []string) (string, error) {
		return delegate(sdk.LaunchRequest{Agent: a[0], Input: json.RawMessage(a[1])})
	}},
	// launch JSON is all that can be asked for.
	"launch": {1, func(a []string) (string, error) {
		var r sdk.LaunchRequest
		if err := json.Unmarshal([]byte(a[0]), &r); err != nil {
			return "", err
		}
		return delegate(r)
	}},
	// descend N AGENT launches AGENT, which does the same with one less.
	"descend": {2, func(a []string) (string, error) {
		n, err := strconv.Atoi(a[0])
		if err != nil || n == 0 {
			return "the bottom", err
		}
		next, _ := json.Marshal([]string{"descend", strconv.Itoa(n - 1), a[1]})
		return delegate(sdk.LaunchRequest{Agent: a[1], Input: next})
	}},
	// often N AGENT launches AGENT so often, which does nothing.
	"often": {2, func(a []string) (string, error) {
		n, err := strconv.Atoi(a[0])
		for i := range n {
			if _, err := delegate(sdk.LaunchRequest{Agent: a[1]}); err != nil {
				return fmt.Sprintf("after %d", i), err
			}
		}
		return "ok", err
	}},
}

func delegate(r sdk.LaunchRequest) (string, error) {
	got, err := sdk.AgentLaunch(r)
	if e := (*sdk.Error)(nil); errors.As(err, &e) && !strings.Contains(err.Error(), e.Hint) {
		return "", fmt.Errorf("%w [%s]", err, e.Hint)
	}
	if err != nil {
		return "", err
	}
	said := strings.ReplaceAll(strings.TrimSpace(got.Stdout+got.Stderr), "\n", " / ")
	return fmt.Sprintf("%s %d [%s]", got.Outcome, got.ExitCode, said), nil
}
