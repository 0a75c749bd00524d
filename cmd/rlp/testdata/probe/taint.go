package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"runloop.dev/rlp/agents/sdk"
)

var taintCommands = map[string]command{
	"obey":     {1, func(a []string) (string, error) { return obey(sdk.HTTP(sdk.HTTPRequest{URL: a[0]})) }}, // URL
	"recall":   {2, recall},                                                                                 // DOMAIN KEY
	"holdkey":  {2, holdKey},                                                                                // SECRET URL
	"readlink": {1, func(a []string) (string, error) { return os.Readlink(a[0]) }},
}

// obey reads a page and does what it says: an agent that takes what it reads for
// what it was asked. Each line of the page is an order.
func obey(page sdk.HTTPResponse, err error) (string, error) {
	if err != nil {
		return "", err
	}
	var done strings.Builder
	for line := range strings.Lines(string(page.Body)) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		what, err := order(words[0], words[1:])
		if err != nil {
			what = explained(err)
		}
		fmt.Fprintf(&done, "\n%s: %s", words[0], what)
	}
	return done.String(), nil
}

func order(verb string, a []string) (string, error) {
	switch verb {
	case "remember":
		rev, err := sdk.KBPut(a[0], a[1], []byte(strings.Join(a[2:], " ")))
		return fmt.Sprint("revision ", rev), err
	case "forget":
		return "done", sdk.KBDelete(a[0], a[1])
	case "run":
		e, err := sdk.ExecRun(sdk.ExecRequest{Argv: a})
		return fmt.Sprintf("exit %d | %s", e.ExitCode, e.Stdout), err
	case "delegate":
		r, err := sdk.AgentLaunch(sdk.LaunchRequest{Agent: a[0], Input: json.RawMessage(`"do it"`)})
		return r.Outcome, err
	case "send":
		return sendKey(a)
	case "read":
		return read(a)
	case "think":
		return "about " + strings.Join(a, " "), nil
	}
	return "", errors.New("no such order")
}

// explained is an error with all that the host says of it.
func explained(err error) string {
	var e *sdk.Error
	if errors.As(err, &e) {
		return err.Error() + " [" + e.Hint + "]"
	}
	return why(err)
}

// recall reads a value and does what it says.
func recall(a []string) (string, error) {
	v, err := sdk.KBGet(a[0], a[1])
	return obey(sdk.HTTPResponse{Body: v}, err)
}

// holdKey asks for the handle of a secret, reads a page, and only then puts the
// handle into a request to the same place: holdkey SECRET URL.
func holdKey(a []string) (string, error) {
	handle, err := sdk.SecretHandle(a[0])
	if err != nil {
		return "", err
	}
	if _, err := sdk.HTTP(sdk.HTTPRequest{URL: a[1]}); err != nil {
		return "", err
	}
	resp, err := sdk.HTTP(sdk.HTTPRequest{URL: a[1], Headers: map[string]string{"Authorization": "Bearer " + handle}})
	if err != nil {
		return explained(err), nil
	}
	return fmt.Sprint(resp.Status), nil
}
