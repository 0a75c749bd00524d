package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"runloop.dev/rlp/internal/base/home"
)

// A gitSink is a repository in which each publication is a commit without files
// on a branch of the log's own, and whose message is the checkpoints:
//
//	git log --reverse --format=%B rlp/abcdefgh/default
//
// prints a file of checkpoints. Neither the branch that is checked out nor the
// files of a work tree are touched.
type gitSink string

func (s gitSink) Name() string { return "git:" + string(s) }

// gitTries is how often a commit is made anew because another one came first.
const gitTries = 5

// gitTime bounds one publication.
const gitTime = 10 * time.Second

func (s gitSink) put(ctx context.Context, origin string, notes [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	g, err := openGit(string(s))
	if err != nil {
		return err
	}
	ref := "refs/heads/rlp/" + strings.TrimPrefix(origin, originPrefix)
	tree, err := g.run(ctx, nil, "mktree")
	if err != nil {
		return err
	}
	message := JoinNotes(notes)
	for range gitTries {
		args := []string{"commit-tree", tree, "-F", "-"}
		// No parent is a branch that is not there yet.
		parent, _ := g.run(ctx, nil, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
		if parent != "" {
			args = append(args, "-p", parent)
		}
		commit, err := g.run(ctx, message, args...)
		if err != nil {
			return err
		}
		if parent == "" {
			parent = strings.Repeat("0", len(commit))
		}
		if _, err = g.run(ctx, nil, "update-ref", "-m", "checkpoint", ref, commit, parent); err == nil {
			return nil
		} else if now, _ := g.run(ctx, nil, "rev-parse", "--verify", "--quiet", ref+"^{commit}"); now == "" || now == parent {
			return err // it was not that another came first
		}
	}
	return errors.New("others write to the branch all the time")
}

// git is git in one repository, deaf to all that could make it run another
// program: nothing of the operator's settings, no hooks, no filters, no
// transport, and commands alone that look at no index and no work tree.
type git struct {
	program, dir string
}

func openGit(repository string) (*git, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("git is not there: %w", err)
	}
	dir := repository
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
		dir = filepath.Join(dir, ".git")
	}
	// Naming a repository outright tells git to trust it, whoever owns it.
	for _, path := range []string{repository, dir, filepath.Join(dir, "config")} {
		info, err := os.Lstat(path)
		if err != nil {
			return nil, fmt.Errorf("it is no repository; make one with git init --bare %s: %w", repository, err)
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is neither a folder nor a file", path)
		}
		if info.Mode().Perm()&0o002 != 0 {
			return nil, fmt.Errorf("%s can be written by everybody: what is told there can be taken back", path)
		}
		if err := home.Owned(path, info); err != nil {
			return nil, err
		}
	}
	return &git{program: program, dir: dir}, nil
}

// maxGit bounds what is kept of what git says.
const maxGit = 4 << 10

func (g *git) run(ctx context.Context, stdin []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, g.program, append([]string{
		"--git-dir=" + g.dir, "--no-pager",
		"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.fsync=all",
		"-c", "gc.auto=0", "-c", "maintenance.auto=false",
	}, args...)...)
	cmd.Dir = "/"
	cmd.Env = []string{
		"PATH=/usr/bin:/bin", "HOME=/", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_AUTHOR_NAME=rlp", "GIT_AUTHOR_EMAIL=rlp@localhost", "GIT_COMMITTER_NAME=rlp",
		"GIT_COMMITTER_EMAIL=rlp@localhost",
	}
	cmd.Stdin = bytes.NewReader(stdin)
	var stdout, stderr head
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, stderr.text())
	}
	return stdout.text(), nil
}

// head keeps the first bytes of what is written to it.
type head struct{ kept []byte }

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), maxGit-len(h.kept))]...)
	return len(p), nil
}

func (h *head) text() string { return strings.TrimSpace(string(h.kept)) }
