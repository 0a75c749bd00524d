// Command first_agent greets whom it is told to greet, and counts how often it did.
package main

import (
	"errors"
	"os"
	"strconv"

	"runloop.dev/rlp/agents/sdk"
)

func main() {
	name := "world"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	os.Stdout.WriteString(greet(name) + "\n")
}

// greet greets a name. That it may not count is no reason to end.
func greet(name string) string {
	times, err := count(name)
	if err != nil {
		return "hello, " + name + "; I cannot count: " + sdk.Why(err)
	}
	text := strconv.Itoa(times)
	if err := sdk.Result([]byte(text)); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
	}
	return "hello, " + name + " (" + text + ")"
}

// count adds one to how often a name was greeted, in the knowledge base.
func count(name string) (times int, err error) {
	value, err := sdk.KBGet("events", name)
	if err != nil && !errors.Is(err, sdk.ErrNotExist) {
		return 0, err
	}
	if err == nil {
		if times, err = strconv.Atoi(string(value)); err != nil {
			return 0, err
		}
	}
	times++
	_, err = sdk.KBPut("events", name, []byte(strconv.Itoa(times)))
	return times, err
}
