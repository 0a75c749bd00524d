package launcher_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"runloop.dev/rlp/launcher"
)

// A program calls launcher.Main first, for it is its own child processes. Then it
// opens a home, launches a bundle with an extra denial, and asks why it was denied.
func Example() {
	dir, err := os.MkdirTemp("", "launcher-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	bundle, err := putsIn(dir) // an agent that puts one value into the knowledge base
	if err != nil {
		panic(err)
	}

	l, err := launcher.Open(launcher.Options{Home: filepath.Join(dir, "home")})
	if err != nil {
		panic(err)
	}
	q := launcher.Request{Bundle: bundle, Deny: []string{"kb:write:*"}}
	report, err := l.Launch(context.Background(), q)
	if err != nil {
		panic(err)
	}
	why, err := l.Explain(context.Background(), q, launcher.Query{Text: "kb:write:notes"})
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Outcome, "denied:", report.Usage.Denied)
	fmt.Println(why.Decision, "by the", why.Layer)
	// Output:
	// ok denied: 1
	// deny by the caller
}
