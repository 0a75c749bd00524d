// Command critic is an agent that other agents launch: it reads a text and says
// what could be plainer in it. It needs nothing but its input.
package main

import (
	"encoding/json"
	"io"
	"os"

	"runloop.dev/rlp/agents/sdk"
)

func main() {
	input, err := io.ReadAll(os.Stdin)
	var texts []text
	if err == nil {
		err = json.Unmarshal(input, &texts)
	}
	if err != nil {
		os.Stderr.WriteString("critic: the input is a list of {\"name\",\"text\"}: " + err.Error() + "\n")
		os.Exit(2)
	}
	if err := sdk.ResultOf(review(texts)); err != nil {
		os.Stderr.WriteString("critic: " + err.Error() + "\n")
		os.Exit(1)
	}
}
