package main

import (
	"errors"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"runloop.dev/rlp/agents/sdk"
)

// The programs, as policy.caps names them.
const (
	gitProgram  = "/usr/bin/git"
	grepProgram = "/usr/bin/grep"
)

// patience is how long one program may take.
const patience = 30 * time.Second

// A janitor looks through one checkout.
type janitor struct {
	repo   string
	report report
}

// look gathers the report. A step that fails is a problem, and the next is made.
func (j *janitor) look() {
	if _, err := os.Stat(path.Join(j.repo, ".git")); err != nil {
		j.report.problem("look at", path.Join(j.repo, ".git"), err)
		return // no checkout, or one that the policy withholds: programs are not sent where the agent may not look
	}
	j.branches()
	j.status()
	j.files()
	j.marks()
	j.report.sort()
}

// git runs a git that only looks: it takes no locks and runs none of the
// programs that a checkout's settings can name for hooks, watching and paging.
func (j *janitor) git(args ...string) (string, bool) {
	argv := []string{
		gitProgram, "-C", j.repo, "--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c",
		"core.hooksPath=/dev/null",
		"-c", "core.quotePath=false", "-c", "submodule.recurse=false",
	}
	return j.start(append(argv, args...), "git "+args[0], 0)
}

// start runs one program; what it says is used if it ended with 0 or other.
func (j *janitor) start(argv []string, name string, other int) (string, bool) {
	r, err := sdk.ExecRun(sdk.ExecRequest{Argv: argv, Timeout: patience})
	switch {
	case err != nil:
		j.report.problem("run", name, err)
		return "", false
	case r.TimedOut:
		j.report.problem("run", name, errors.New("took longer than "+patience.String()))
		return "", false
	case r.ExitCode != 0 && r.ExitCode != other:
		j.report.problem("run", name, errors.New("exit code "+strconv.Itoa(r.ExitCode)+": "+firstLine(r.Stderr)))
		return "", false
	case r.StdoutCut:
		j.report.problem("read all of", name, errors.New("it says more than the host keeps"))
	}
	return string(r.Stdout), true
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

// branches finds the local branches that are stale, and whether what is on
// them is in HEAD.
func (j *janitor) branches() {
	all, ok := j.git("for-each-ref", "--format=%(refname:short)%09%(committerdate:unix)%09%(HEAD)", "refs/heads")
	if !ok {
		return
	}
	merged, ok := j.git("for-each-ref", "--merged=HEAD", "--format=%(refname:short)%09%(committerdate:unix)%09%(HEAD)",
		"refs/heads")
	inHead := map[string]bool{}
	if ok {
		for _, b := range parseBranches(merged) {
			inHead[b.name] = true
		}
	}
	list := parseBranches(all)
	var newest int64
	for _, b := range list {
		newest = max(newest, b.committed)
	}
	j.report.branches = len(list)
	for _, b := range list {
		b.days, b.merged = (newest-b.committed)/(24*60*60), inHead[b.name]
		if !b.current && b.days >= j.report.options.staleDays {
			j.report.stale = append(j.report.stale, b)
		}
	}
}

// status finds what is not committed.
func (j *janitor) status() {
	if text, ok := j.git("status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=all"); ok {
		j.report.changes = parseStatus(text)
	}
}

// files finds the large files that are committed.
func (j *janitor) files() {
	text, ok := j.git("ls-tree", "-r", "-l", "-z", "HEAD")
	if !ok {
		return
	}
	for _, f := range parseTree(text) {
		j.report.files++
		j.report.bytes += f.bytes
		if f.bytes >= j.report.options.large {
			j.report.large = append(j.report.large, f)
		}
	}
}

// marks counts what was left for later in the texts of the checkout.
func (j *janitor) marks() {
	argv := []string{
		grepProgram, "-r", "-I", "-o", "-w", "-H", "-Z", "-E", "--exclude-dir=.git", "-e", "TODO|FIXME|XXX",
		"--", j.repo,
	}
	if text, ok := j.start(argv, "grep", 1); ok { // 1: nothing was found
		j.report.marks = parseMarks(text, j.repo)
	}
}
