// Command confined is rlp as far as it confines a program, and nothing else: it
// starts before each program, and in a third of the time.
package main

import (
	"os"

	"runloop.dev/rlp/internal/effect/lane"
)

func main() { os.Exit(lane.Confined()) }
