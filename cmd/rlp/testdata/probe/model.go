package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"runloop.dev/rlp/agents/sdk"
)

var modelCommands = map[string]command{
	"ask":    {2, ask},    // ask MODEL TEXT
	"askmax": {3, askMax}, // askmax MODEL TOKENS TEXT
	"cold":   {2, cold},   // ask at temperature 0
	"tools":  {2, tools},  // ask, with a tool that must be used
	"embed":  {2, embed},
}

func ask(a []string) (string, error) { return asked(askOf(a[0], a[1])) }

func askMax(a []string) (string, error) {
	r := askOf(a[0], a[2])
	var err error
	if r.MaxTokens, err = strconv.Atoi(a[1]); err != nil {
		return "", err
	}
	return asked(r)
}

func cold(a []string) (string, error) {
	r := askOf(a[0], a[1])
	r.Temperature = new(float64)
	return asked(r)
}

func tools(a []string) (string, error) {
	r := askOf(a[0], a[1])
	r.Tools = json.RawMessage(`[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]`)
	r.ToolChoice = json.RawMessage(`"required"`)
	c, err := sdk.ModelComplete(r)
	if err != nil {
		return "", err
	}
	r.Messages = append(r.Messages, sdk.Message{Role: "assistant", Content: c.Text, ToolCalls: c.ToolCalls})
	for _, call := range c.ToolCalls {
		r.Messages = append(r.Messages, sdk.Message{Role: "tool", ToolCallID: call.ID, Content: "at " +
			call.Function.Arguments})
	}
	r.Model, r.Tools, r.ToolChoice = a[0]+"2", nil, nil // a model that answers in words
	return asked(r)
}

func askOf(model, text string) sdk.CompletionRequest {
	return sdk.CompletionRequest{Model: named(model), Messages: []sdk.Message{{Role: "user", Content: text}}}
}

// hinted is an error with all that the host says of it.
func hinted(err error) error {
	if e := (*sdk.Error)(nil); errors.As(err, &e) {
		return fmt.Errorf("%s, %s: %s", e.Errno, e.Reason, e.Hint)
	}
	return err
}

// named is the name of a model, "-" being none.
func named(model string) string {
	if model == "-" {
		return ""
	}
	return model
}

func asked(r sdk.CompletionRequest) (string, error) {
	c, err := sdk.ModelComplete(r)
	if err != nil {
		return "", hinted(err)
	}
	text := fmt.Sprintf("%q by %s, %d in, %d out, %g USD, %s", c.Text, c.Model, c.Usage.TokensIn, c.Usage.TokensOut,
		c.Usage.USD, c.FinishReason)
	if c.Cached {
		text += ", cached"
	}
	return text, nil
}

func embed(a []string) (string, error) {
	e, err := sdk.ModelEmbed(named(a[0]), []string{a[1]})
	if err != nil {
		return "", hinted(err)
	}
	return fmt.Sprintf("%d numbers by %s, %d in", len(e.Vectors[0]), e.Model, e.Usage.TokensIn), nil
}
