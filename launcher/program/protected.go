package program

// Protected are the names that a program leaves as they are in all that it may write:
// what takes effect later, outside of its sandbox, when somebody uses git, a shell, an
// editor or an assistant there, without asking for it.
func Protected() []string {
	list := []string{
		// These say where the rest lies of a worktree of git, and of a repository of Mercurial.
		".git/worktrees/*/gitdir", ".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath",
		// Hooks that are committed, and what tools that hook themselves into git read.
		".husky", ".githooks", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml",
		// A shell that enters the folder.
		".envrc", ".direnv",
		// Editors, and what assistants start: servers, hooks, checks.
		".vscode", ".idea", ".zed", ".exrc", ".nvimrc", ".nvim.lua",
		".mcp.json", ".claude", ".claude.json", ".cursor", ".gemini", ".codex", ".windsurf", ".kiro", ".roo", ".opencode",
		"opencode.json", ".aider.conf.yml",
		// Shells and sessions.
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
		".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".config/fish",
		".config/autostart", ".config/systemd", ".config/environment.d", ".xprofile", ".xinitrc", ".xsession", ".xsessionrc",
		// What git and ssh of the operator's run.
		".gitconfig", ".config/git", ".ssh",
	}
	for _, dir := range []string{".git/", ".git/worktrees/*/"} {
		for _, name := range ofGit() {
			list = append(list, dir+name)
		}
	}
	return list
}

// ofGit are the names in a folder of git of what git runs, of what says where that
// lies, and of commands that it has still to carry out.
func ofGit() []string {
	return []string{
		"hooks", "config", "config.worktree", "commondir", "modules", "rebase-merge", "rebase-apply", "sequencer",
	}
}
