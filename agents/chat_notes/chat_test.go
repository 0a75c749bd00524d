package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/sdktest"
)

// host answers as rlp does, with questions for turns.
func host(t *testing.T, questions ...string) *sdktest.Host {
	h := sdktest.New(t)
	h.Handle("turn_next", func([]string) ([]byte, error) {
		if len(questions) == 0 {
			return nil, &sdk.Error{Errno: sdk.ErrNotExist}
		}
		q := questions[0]
		questions = questions[1:]
		if q == "too long" {
			return nil, &sdk.Error{Errno: sdk.ErrTooBig}
		}
		return []byte(q), nil
	})
	h.Handle("kb_search", func([]string) ([]byte, error) {
		return []byte(`[{"key":"k1","score":2.5,"snippet":"the harbour\nlights"}]`), nil
	})
	h.Handle("model_complete", func(args []string) ([]byte, error) {
		var req sdk.CompletionRequest
		if err := json.Unmarshal([]byte(args[0]), &req); err != nil {
			return nil, err
		}
		return json.Marshal(sdk.Completion{Text: req.Messages[len(req.Messages)-1].Content, Model: "local:echo"})
	})
	return h
}

func notes(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"boat.md":        "# The boat\n\n- The boat needs new paint before summer.\n",
		"deep/garden.md": "Water the garden on Friday.\n",
		"image.png":      "boat paint summer", ".hidden.md": "boat paint summer",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Each question is answered by the lines that have most of its words, and by a
// model that is shown them and what was said before.
func TestTalk(t *testing.T) {
	h := host(t, "When does the boat need paint?", "  ", "too long", "And the garden?")
	dir := notes(t)
	c := chat{folder: dir}
	var out strings.Builder
	if err := c.talk(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		dir + "/boat.md:3: The boat needs new paint before summer.\n", "kb notes/k1: the harbour lights\n",
		"local:echo: When does the boat need paint?\n",
		"That was too long", dir + "/deep/garden.md:1: Water the garden on Friday.\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "image.png") || strings.Contains(out.String(), ".hidden") {
		t.Errorf("what is no note was read:\n%s", out.String())
	}
	last := slices.IndexFunc(h.Calls, func(c sdktest.Call) bool {
		return c.Op == "model_complete" && strings.Contains(c.Args[0], "And the garden?")
	})
	if last < 0 || !strings.Contains(h.Calls[last].Args[0], `"When does the boat need paint?"`) {
		t.Error("the model is not told what was asked before")
	}
	if string(h.Result) != `{"answered":2,"questions":2}` {
		t.Errorf("result %s", h.Result)
	}
}

// What may not be read or asked is said, and the rest is answered.
func TestWhatIsTakenAwayIsSaid(t *testing.T) {
	h := host(t, "the boat", "nothing whatsoever")
	h.Deny("kb_search", "", &sdk.Error{Errno: sdk.ErrDenied, Hint: "override:chat_notes.toml takes it away"})
	h.Deny("model_complete", "", &sdk.Error{Errno: sdk.ErrDenied, Hint: "override:chat_notes.toml takes it away"})
	c := chat{folder: notes(t)}
	var out strings.Builder
	if err := c.talk(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"boat.md:1: The boat\n", "(could not ask a model: ",
		"override:chat_notes.toml takes it away)", "The notes say nothing about that.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

// A conversation that cannot go on ends.
func TestARefusedTurnEnds(t *testing.T) {
	h := host(t, "one")
	h.Deny("turn_next", "", &sdk.Error{Errno: sdk.ErrDenied})
	c := chat{folder: notes(t)}
	var out strings.Builder
	if err := c.talk(&out); !errors.Is(err, sdk.ErrDenied) {
		t.Errorf("%v", err)
	}
}
