package launcher_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"runloop.dev/rlp/caps"
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

// A module without a bundle asks for what the program says, and for nothing else.
func ExampleRequest_module() {
	dir, err := os.MkdirTemp("", "launcher-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	module := filepath.Join(dir, "puts.wasm") // it puts one value into the knowledge base
	if err := os.WriteFile(module, []byte(putting()), 0o600); err != nil {
		panic(err)
	}

	l, err := launcher.Open(launcher.Options{Home: filepath.Join(dir, "home")})
	if err != nil {
		panic(err)
	}
	for _, base := range [][]string{nil, {"kb:write:notes"}} {
		report, err := l.Launch(context.Background(), launcher.Request{Bundle: module, Base: base})
		if err != nil {
			panic(err)
		}
		fmt.Println(report.Agent, "holds", report.Effective, "denied:", report.Usage.Denied > 0)
	}
	// Output:
	// puts holds [] denied: true
	// puts holds [kb:write:notes] denied: false
}

type ticket string

// Touches is the scope of kb_write that closing a ticket needs.
func (t ticket) Touches() (caps.Mode, string) { return 0, "events" }

// A host call of the program's own: agents import ticket_close of the module acme,
// and only those whose policy grants writing to events can call it.
func ExampleDefine() {
	dir, err := os.MkdirTemp("", "launcher-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	// an agent that closes ticket 7 and prints the answer
	bundle, err := agentIn(dir, "closes", calling("acme", "ticket_close", "7"), `kb_write = ["events"]`)
	if err != nil {
		panic(err)
	}

	parse := func(request []byte) (ticket, error) { return ticket(request), nil }
	do := func(_ context.Context, _ launcher.Permit, t ticket) ([]byte, error) {
		return []byte("closed " + t), nil
	}
	l, err := launcher.Open(launcher.Options{
		Home:      filepath.Join(dir, "home"),
		HostFuncs: []launcher.HostFunc{launcher.Define("acme", "ticket_close", caps.KBWrite, parse, do)},
	})
	if err != nil {
		panic(err)
	}
	for _, deny := range [][]string{nil, {"kb:write:*"}} {
		report, err := l.Launch(context.Background(), launcher.Request{Bundle: bundle, Deny: deny})
		if err != nil {
			panic(err)
		}
		fmt.Println("answer:", report.Stdout, "denied:", report.Usage.Denied)
	}
	// Output:
	// answer: closed 7 denied: 0
	// answer:  denied: 1
}
