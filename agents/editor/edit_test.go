package main

import (
	"strings"
	"testing"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/sdktest"
)

func TestEditorGivesDraftsToTheCritic(t *testing.T) {
	h := sdktest.New(t)
	for _, key := range []string{"a", "b"} {
		if _, err := sdk.KBPut("drafts", key, []byte("very "+key)); err != nil {
			t.Fatal(err)
		}
	}
	answer := `{"outcome":"ok","result":[{"name":"a","remark":"shorter"}]}`
	h.Handle("agent_launch", func(args []string) ([]byte, error) {
		if !strings.Contains(args[0], `"agent":"critic"`) || !strings.Contains(args[0], "very b") {
			t.Errorf("asked for %s", args[0])
		}
		return []byte(answer), nil
	})
	for want, with := range map[string]string{
		"2 drafts, 1 remarks\n  a: shorter\n": answer,
		"critic ended with timeout 124":       `{"outcome":"timeout","exit_code":124}`,
		"what critic returned":                `{"outcome":"ok","result":"nonsense"}`,
	} {
		answer = with
		var e edit
		if e.run(); !strings.Contains(e.summary(), want) {
			t.Errorf("%s: %s", with, e.summary())
		}
	}
}

func TestEditorSaysWhatItCouldNot(t *testing.T) {
	h := sdktest.New(t)
	var none edit
	if none.run(); none.summary() != "0 drafts, 0 remarks\n" {
		t.Errorf("%s", none.summary())
	}
	if _, err := sdk.KBPut("drafts", "a", []byte("a")); err != nil {
		t.Fatal(err)
	}
	h.Deny("agent_launch", "", &sdk.Error{Op: "agent_launch", Errno: sdk.ErrUnavailable})
	var e edit
	if e.run(); !strings.Contains(e.summary(), "could not do: critic") {
		t.Errorf("%s", e.summary())
	}
}
