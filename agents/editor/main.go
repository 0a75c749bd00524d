// Command editor is an agent that launches another one: it gives the drafts of
// the knowledge base to the agent critic, and prints what that one says of them.
//
// What another agent answers is content from outside. So the editor reads
// everything first, asks once, and needs nothing after the answer.
package main

import (
	"os"

	"runloop.dev/rlp/agents/sdk"
)

func main() {
	var e edit
	e.run()
	if err := sdk.ResultOf(e); err != nil {
		e.problem("the result", err)
	}
	os.Stdout.WriteString(e.summary())
}
