// Command mailer is an agent: it sends the drafts that lie in the knowledge base
// through the HTTP API of a mail service and marks them as sent.
//
// The key of the API it has as a handle, which it writes where the key belongs;
// the host puts the value in on the way to the hosts that the key is bound to.
package main

import (
	"io"
	"os"

	"runloop.dev/rlp/agents/sdk"
)

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Stderr.WriteString("mailer: reading the input: " + err.Error() + "\n")
		os.Exit(2)
	}
	job, err := parseJob(input)
	if err != nil {
		os.Stderr.WriteString("mailer: " + err.Error() +
			"; give --input '{\"api\":\"https://mail.example.com/v1/messages\",\"from\":\"me@example.com\"}'\n")
		os.Exit(2)
	}
	os.Stdout.WriteString(run(job))
}

// run sends the drafts and returns the summary for people.
func run(j job) string {
	o := outcome{}
	o.send(j)
	if err := sdk.Result(o.json()); err != nil {
		o.problem("the result", err)
	}
	return o.summary()
}
