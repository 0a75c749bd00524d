package providers

import (
	"strconv"
	"strings"

	"runloop.dev/rlp/internal/effect/model"
)

// maxAnswer bounds what a model writes in one answer, in bytes: several times
// what the longest answers are.
const maxAnswer = 8 << 20

// progress is how far an answer has come.
type progress struct {
	text    strings.Builder
	calls   []*calling
	reason  string
	metered model.Metered
	size    int64 // bytes that the model wrote, whatever they are
	began   bool  // something of it came
	ended   bool  // all of it came
}

// A calling is a tool call as it comes.
type calling struct {
	id, name  string
	arguments strings.Builder
}

// wrote counts what the model wrote, and refuses what has no end.
func (g *progress) wrote(pieces ...string) error {
	for _, p := range pieces {
		g.size += int64(len(p))
	}
	if g.size > maxAnswer {
		return errTooLarge
	}
	return nil
}

func (g *progress) completion() model.Completion {
	c := model.Completion{Text: g.text.String(), FinishReason: g.reason, Metered: g.metered}
	for i, call := range g.calls {
		if call.id == "" { // some servers give none, and nobody could answer it
			call.id = "call_" + strconv.Itoa(i)
		}
		arguments := call.arguments.String()
		if strings.TrimSpace(arguments) == "" {
			arguments = "{}" // a call without arguments
		}
		c.ToolCalls = append(c.ToolCalls, model.ToolCall{
			ID: call.id, Type: "function", Function: model.Function{Name: call.name, Arguments: arguments},
		})
	}
	return c
}
