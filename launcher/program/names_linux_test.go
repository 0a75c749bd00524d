package program_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/launcher/program"
)

// A repository is a folder with one of git in it, and a worktree beside that.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	operator(t, dir, `
git init -q -b main repo; cd repo; echo one >file; git add file; git commit -qm one
git worktree add -q ../tree; git init -q -b main --separate-git-dir ../apart ../parted`)
	return dir
}

// operator does in a folder what the operator would, outside of every sandbox.
func operator(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = dir, []string{
		"PATH=/usr/bin:/bin", "HOME=" + dir, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.c", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@b.c", "GIT_EDITOR=true",
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("the operator: %v: %s", err, out)
	}
}

func leads(home string) program.Leads {
	return program.Leads{Home: home, Resolve: func(path string) (end string, links []string, err error) {
		end = "/"
		for rest := strings.Split(path, "/"); len(rest) > 0; rest = rest[1:] {
			end = filepath.Join(end, rest[0])
			to, err := os.Readlink(end)
			if err != nil {
				continue
			}
			if links = append(links, end); len(links) > 40 {
				return "", nil, os.ErrInvalid
			}
			if end = filepath.Dir(end); filepath.IsAbs(to) {
				end = "/"
			}
			rest = append([]string{""}, append(strings.Split(to, "/"), rest[1:]...)...)
		}
		return end, links, nil
	}}
}

// attempt runs a script in the lane ns in a folder that it may write, as rlp run does,
// or, as a control, with nothing protected.
func attempt(t *testing.T, dir, script string, guarded bool) string {
	t.Helper()
	sh, err := lane.Resolve("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	c := &lane.Command{
		Program: sh.File, Argv: []string{"sh", "-c", script}, Cwd: dir, Timeout: 2 * time.Minute, MaxOutput: 1 << 20,
		Env: []string{
			"PATH=/usr/bin:/bin", "HOME=/", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.c", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@b.c",
		},
		Folders: []lane.Folder{{Path: dir, Access: lane.ReadWrite}},
	}
	if guarded {
		c.Folders, c.Protected = leads(dir).Settled(c.Folders), program.Protected()
	}
	r, err := newLane(t).Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Stdout.Data) + string(r.Stderr.Data)
}

// ran is what the operator's commands ran of the program's.
const ran = "ran"

// Nothing that a program writes beside what git runs is run by the operator's git. The
// control is the same program where nothing is protected: what it wrote runs.
//
//rlp:holds N20
func TestGitRunsNothingThatAProgramWrote(t *testing.T) {
	evil := "[core]\n\tfsmonitor = \"touch %DIR/ran; false\"\n"
	hook := "#!/bin/sh\ntouch %DIR/ran\n"
	for name, c := range map[string]struct{ before, script, after string }{
		"a worktree's settings": {
			"git -C repo config extensions.worktreeConfig true", "cat evil >repo/.git/worktrees/tree/config.worktree",
			"git -C tree status",
		},
		"a worktree's repository": {
			"", "mkdir x; cp -r repo/.git/* x; cat evil >>x/config; echo $PWD/x >repo/.git/worktrees/tree/commondir",
			"git -C tree status",
		},
		"a submodule of a worktree": {
			"mkdir -p repo/.git/worktrees/tree/modules; git -C tree init -q --separate-git-dir ../repo/.git/worktrees/tree/modules/s s",
			"cat evil >>repo/.git/worktrees/tree/modules/s/config", "git -C tree/s status",
		},
		"a submodule": {
			"mkdir -p repo/.git/modules/a; git init -q --separate-git-dir repo/.git/modules/a/b repo/s", "cat evil >>repo/.git/modules/a/b/config",
			"git -C repo/s status",
		},
		"a rebase that waits": {
			"git -C repo -c sequence.editor='printf \"break\\n\" >' rebase -i --root",
			"echo \"exec touch $PWD/ran\" >repo/.git/rebase-merge/git-rebase-todo", "git -C repo rebase --continue",
		},
		"hooks behind a link": {
			"mkdir scripts; rm -r repo/.git/hooks; ln -s ../../scripts repo/.git/hooks",
			"cp hook scripts/pre-commit", "cd repo; git commit --allow-empty -qm two",
		},
		"hooks behind two links": {
			"mkdir scripts; rm -r repo/.git/hooks; ln -s ../../one repo/.git/hooks; ln -s scripts one",
			"rm one; mkdir one; cp hook one/pre-commit; cp hook scripts/pre-commit", "cd repo; git commit --allow-empty -qm two",
		},
		"a repository behind a link": {
			"mv repo/.git real; ln -s ../real repo/.git", "cat evil >>real/config", "git -C repo status",
		},
		"a repository that lies apart": {"", "cat evil >>apart/config", "git -C parted status"},
		"hooks of a repository that lies apart": {
			"", "mkdir -p apart/hooks; cp hook apart/hooks/pre-commit", "cd parted; git commit --allow-empty -qm two",
		},
		"a folder of hooks": {
			"mkdir repo/mine; git -C repo config core.hooksPath mine", "cp hook repo/mine/pre-commit",
			"cd repo; git commit --allow-empty -qm two",
		},
		"settings that are included": {
			"touch shared; printf '[include]\\n\\tpath = ../../shared\\n' >>repo/.git/config", "cat evil >shared",
			"git -C repo status",
		},
		"settings that are included on a condition": {
			"touch shared; printf '[includeIf \"gitdir:**/.git\"]\\n\\tpath = \"../../shared\"; x\\n' >>repo/.git/config",
			"cat evil >shared", "git -C repo status",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, guarded := range []bool{false, true} {
				dir := repository(t)
				for file, text := range map[string]string{"evil": evil, "hook": hook} {
					if err := os.WriteFile(dir+"/"+file, []byte(strings.ReplaceAll(text, "%DIR", dir)), 0o700); err != nil {
						t.Fatal(err)
					}
				}
				operator(t, dir, c.before)
				said := attempt(t, dir, c.script, guarded)
				operator(t, dir, c.after)
				_, err := os.Stat(dir + "/" + ran)
				if is := err == nil; is == guarded {
					t.Errorf("guarded: %v, ran: %v: %s", guarded, is, said)
				}
			}
		})
	}
}

// Who works with git in a folder does so as before, in a worktree too.
//
//rlp:holds N20
func TestGitWorksWhereNamesAreProtected(t *testing.T) {
	dir := repository(t)
	out := attempt(t, dir, `set -e
for at in repo tree; do
	cd $at; git checkout -q -b side-$at; echo two >>file; git commit -qam two; git tag one-$at; git stash list
	git checkout -q -b other-$at HEAD~; echo x >more; git add more; git commit -qm more; git merge -q -m both side-$at
	git reset -q --hard HEAD~; git cherry-pick side-$at >/dev/null; echo y >>file; git stash -q; git stash pop -q; git checkout -q file
	git gc -q; git log --oneline | wc -l; git status --porcelain; cd ..
done`, true)
	if out != "3\n3\n" {
		t.Errorf("%s", out)
	}
}

// What is kept is what protected names lead to, and nothing that is not written anyhow.
func TestWhatProtectedNamesLeadTo(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	operator(t, dir, `mkdir -p g/a/b/c/d other g/secret g/given
ln -s env g/.envrc; ln -s ../x g/a/.vscode; ln -s ../../../x2 g/a/b/c/.idea; ln -s ../../../../x3 g/a/b/c/d/.idea
ln -s secret/s g/.mcp.json; ln -s ../other/o g/a/.claude; ln -s g/up .vscode; ln -s given g/a/.zed; ln -s ../given g/a/.cursor
ln -s .idea g/a/.idea; mkfifo g/.git`)
	folders := leads(dir).Settled([]lane.Folder{
		{Path: dir + "/g", Access: lane.ReadWrite},
		{Path: dir + "/g/secret"},
		{Path: dir + "/g/given/sub", Access: lane.ReadWrite},
		{Path: dir + "/own", Access: lane.ReadWrite, Own: true},
	})
	var got []string
	for _, f := range folders {
		at, _ := filepath.Rel(dir, f.Path)
		got = append(got, at+" "+[]string{"hidden", "read", "write"}[f.Access])
	}
	slices.Sort(got)
	got = slices.Compact(got)
	want := []string{
		"g write", "g/.envrc read", "g/.mcp.json read", "g/a/.claude read", "g/a/.cursor read", "g/a/.vscode read",
		"g/a/.zed read", "g/a/b/c/.idea read", "g/a/given read", "g/env read", "g/given read", "g/given/sub read",
		"g/other/o read",
		"g/secret hidden", "g/up read", "g/x read", "g/x2 read", "own write",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
