package main

import (
	"os"

	"runloop.dev/rlp/agents/sdk"
)

func main() {
	dir, _ := sdk.Param("notes")
	entries, err := os.ReadDir(dir)
	if err != nil {
		os.Stdout.WriteString("cannot list the notes: " + sdk.Why(err) + "\n")
	}
	for _, e := range entries {
		if _, err := sdk.KBPut("notes", e.Name(), nil); err != nil {
			os.Stdout.WriteString(e.Name() + ": " + sdk.Why(err) + "\n")
		}
	}
}
