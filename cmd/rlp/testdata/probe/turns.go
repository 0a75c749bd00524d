package main

import (
	"errors"
	"io"

	"runloop.dev/rlp/agents/sdk"
)

var turnCommands = map[string]command{
	"turn": {0, turn},
}

// turn waits for the next input and prints it.
func turn([]string) (string, error) {
	input, err := sdk.TurnNext()
	if errors.Is(err, io.EOF) {
		return "no more", nil
	}
	if len(input) > 100 {
		input = append(input[:100], "..."...)
	}
	return string(input), err
}
