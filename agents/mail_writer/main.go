// Command mail_writer is an agent: for each contact of the knowledge base it has
// a model write a mail about what the input says, and keeps that as a draft.
//
// It needs no address and no name and is granted none: it reads contacts with
// masks in their places, and so does the model. Who sends the drafts puts the
// data in (agents/mailer).
package main

import (
	"io"
	"os"

	"runloop.dev/rlp/agents/sdk"
)

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Stderr.WriteString("mail_writer: reading the input: " + err.Error() + "\n")
		os.Exit(2)
	}
	job, err := parseJob(input)
	if err != nil {
		os.Stderr.WriteString("mail_writer: " + err.Error() + "; give --input '{\"about\":\"...\"}'\n")
		os.Exit(2)
	}
	os.Stdout.WriteString(run(job))
}

// run writes the drafts and returns the summary for people.
func run(j job) string {
	o := outcome{}
	o.write(j)
	if err := sdk.Result(o.json()); err != nil {
		o.problem("the result", err)
	}
	return o.summary()
}
