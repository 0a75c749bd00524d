// Command tree_audit is an agent: it walks a source tree and reports large,
// duplicate and suspicious files as JSON, on stdout and as its result.
//
// What it may not read is an entry of "problems"; its exit code is 0 all the
// same, and 2 if its parameter is missing or an argument is wrong.
package main

import (
	"os"

	"runloop.dev/rlp/agents/sdk"
)

const usage = "usage: rlp launch tree_audit --param tree=DIR [-- [--large SIZE] [--top N]]\n"

func main() {
	o, err := parseOptions(os.Args[1:])
	if err != nil {
		os.Stderr.WriteString("tree_audit: " + err.Error() + "\n" + usage)
		os.Exit(2)
	}
	tree, ok := sdk.Param("tree")
	if !ok {
		os.Stderr.WriteString("tree_audit: the parameter tree is needed: --param tree=DIR\n" + usage)
		os.Exit(2)
	}
	os.Stdout.Write(run(osDisk{}, tree, o))
}

// run audits the tree, returns the report to the host and to the caller.
func run(d disk, tree string, o options) []byte {
	r := audit(d, tree, o)
	if err := sdk.Result(r.json("")); err != nil {
		r.problem("return", "the result", err)
	}
	return r.json("  ")
}
