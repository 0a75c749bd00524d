// Command notes_digest is an agent: it reads a folder of Markdown notes, finds
// the contacts, open to-dos and dates in them, writes digest.md and digest.json
// to another folder and keeps contacts and digest in the knowledge base.
//
// What the policy withholds it reports and does without: its exit code is 0
// whatever was denied, and 2 if it was not told where to read and write.
package main

import (
	"os"

	"runloop.dev/rlp/agents/sdk"
)

func main() {
	notes, haveNotes := sdk.Param("notes")
	out, haveOut := sdk.Param("out")
	if !haveNotes || !haveOut {
		os.Stderr.WriteString("notes_digest: parameters notes and out are needed: --param notes=DIR --param out=DIR\n")
		os.Exit(2)
	}
	os.Stdout.WriteString(run(osDisk{}, notes, out))
}

// run does everything and returns the summary for people.
func run(d disk, notes, out string) string {
	digest := collect(d, notes, out)
	o := outcome{digest: digest}
	o.write(d, out)
	o.store()
	if err := sdk.Result(o.json()); err != nil {
		o.digest.problem("return", "the result", err)
	}
	return o.summary()
}
