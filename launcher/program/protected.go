package program

// Protected are the names that a program leaves as they are in all that it may write:
// what takes effect later, outside of its sandbox, when somebody uses git, a shell, an
// editor or an assistant there. A folder of git has more than one file that says where
// its hooks and its settings lie.
func Protected() []string {
	return []string{
		".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".git/modules",
		".envrc", ".vscode", ".idea", ".mcp.json", ".claude", ".cursor",
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
		".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc",
	}
}
