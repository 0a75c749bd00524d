// A guest that reads one value and nothing else.
package main

import (
	"os"

	"runloop.dev/rlp/agents/sdk"
)

func main() {
	value, err := sdk.KBGet("notes", "a")
	if err != nil {
		os.Stdout.WriteString(sdk.Why(err))
	}
	os.Stdout.Write(value)
}
