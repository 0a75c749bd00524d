package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"runloop.dev/rlp/launcher"
)

func Example() {
	launcher.Main() // before anything else
	l, err := launcher.Open(launcher.Options{Home: "/srv/agents", Env: os.Environ()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	report, err := l.Launch(context.Background(), launcher.Request{Bundle: "writer.tar.gz", Deny: []string{"kb:write:*"}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println(report.Outcome, report.Usage.Denied)
}

// A program that cannot be its own child processes says which program is.
func ExampleOpen() {
	_, err := launcher.Open(launcher.Options{Home: "/srv/agents"})
	fmt.Println(errors.Is(err, launcher.ErrNoHelper))
	// Output: true
}
