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
	emit    func(model.Piece)
}

// A calling is a tool call as it comes.
type calling struct {
	id, name  string
	arguments strings.Builder
	told      bool // who waits for parts knows of it
}

// say adds a part of the text.
func (g *progress) say(text string) {
	g.text.WriteString(text)
	if g.emit != nil && text != "" {
		g.emit(model.Piece{Text: text})
	}
}

// call adds a part of the arguments of the call at i. Its name may come in parts as
// well, and is whole when the arguments begin.
func (g *progress) call(i int, arguments string) {
	c := g.calls[i]
	c.arguments.WriteString(arguments)
	if g.emit == nil || arguments == "" {
		return
	}
	g.tell(i)
	g.emit(model.Piece{IsCall: true, Call: i, Arguments: arguments})
}

// tell says that the call at i began, once.
func (g *progress) tell(i int) {
	if c := g.calls[i]; !c.told {
		c.told = true
		g.emit(model.Piece{IsCall: true, Call: i, ID: c.named(i), Name: c.name})
	}
}

// named is the id of a call. Some servers give none, and nobody could answer it.
func (c *calling) named(i int) string {
	if c.id == "" {
		return "call_" + strconv.Itoa(i)
	}
	return c.id
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
		arguments := call.arguments.String()
		if strings.TrimSpace(arguments) == "" {
			g.call(i, "{}") // a call without arguments
			arguments = "{}"
		}
		c.ToolCalls = append(c.ToolCalls, model.ToolCall{
			ID: call.named(i), Type: "function", Function: model.Function{Name: call.name, Arguments: arguments},
		})
	}
	return c
}
