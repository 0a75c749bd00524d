// Command repo_janitor is an agent: it looks through a git checkout with git and
// grep and says what should be tidied up, as Markdown on stdout and in a file,
// and as its JSON result. It changes nothing in the checkout.
//
// What it may not do is an entry of "problems"; its exit code is 0 all the same,
// and 2 if a parameter is missing or an argument is wrong.
package main

import (
	"os"
	"path"

	"runloop.dev/rlp/agents/sdk"
)

const usage = "usage: rlp launch repo_janitor --param repo=DIR --param report=DIR [-- [--stale-days N] [--large " +
	"BYTES] [--top N]]\n"

func main() {
	o, err := parseOptions(os.Args[1:])
	if err != nil {
		stop(err.Error())
	}
	repo, ok := sdk.Param("repo")
	if !ok {
		stop("the parameter repo is needed: --param repo=DIR")
	}
	folder, ok := sdk.Param("report")
	if !ok {
		stop("the parameter report is needed: --param report=DIR")
	}
	os.Stdout.Write(run(repo, folder, o))
}

func stop(why string) {
	os.Stderr.WriteString("repo_janitor: " + why + "\n" + usage)
	os.Exit(2)
}

// reportName is the file that is written to the report's folder.
const reportName = "repo_janitor.md"

// run looks through repo, writes the report to folder, returns it to the host as
// JSON and to the caller as Markdown.
func run(repo, folder string, o options) []byte {
	j := janitor{repo: repo, report: report{repo: repo, options: o}}
	j.look()
	text := j.report.markdown()
	if err := os.WriteFile(path.Join(folder, reportName), text, 0o600); err != nil {
		j.report.problem("write", path.Join(folder, reportName), err)
		text = j.report.markdown()
	}
	if err := sdk.Result(j.report.json()); err != nil {
		j.report.problem("return", "the result", err)
		text = j.report.markdown()
	}
	return text
}
