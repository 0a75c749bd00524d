// Command chat_notes is an agent to talk to: each turn is a question, and the
// answer is what the notes say about it, and what a model makes of that.
//
// It looks each time anew, so that what its operator takes from it between two
// questions is missing from the next answer, which says so.
package main

import (
	"errors"
	"io"
	"os"
	"strings"

	"runloop.dev/rlp/agents/sdk"
)

const usage = "usage: rlp launch agents/chat_notes --param notes=DIR --turns [-- --model MODEL]\n"

func main() {
	folder, ok := sdk.Param("notes")
	if !ok {
		stop("the parameter notes is needed: --param notes=DIR")
	}
	c := chat{folder: folder}
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "--model":
		c.model = args[1]
	case len(args) != 0:
		stop("it takes no argument but --model MODEL")
	}
	if err := c.talk(os.Stdout); err != nil {
		stop(err.Error())
	}
}

func stop(why string) {
	os.Stderr.WriteString("chat_notes: " + why + "\n" + usage)
	os.Exit(2)
}

// talk answers until there are no more questions, and returns how many there
// were.
func (c *chat) talk(out io.Writer) error {
	io.WriteString(out, "Ask about the notes in "+c.folder+".\n\n")
	for {
		line, err := sdk.TurnNext()
		switch {
		case err == io.EOF:
			return c.end()
		case errors.Is(err, sdk.ErrTooBig):
			io.WriteString(out, "That was too long for a question.\n\n")
			continue
		case err != nil: // the next try would end as this one did
			return err
		}
		if question := strings.TrimSpace(string(line)); question != "" {
			io.WriteString(out, c.answer(question)+"\n")
		}
	}
}

func (c *chat) end() error {
	return sdk.ResultOf(map[string]int{"questions": c.asked, "answered": c.answered})
}
