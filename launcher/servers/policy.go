package servers

import (
	"fmt"
	"path/filepath"
	"strings"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// presetOf is the preset for servers that a program fetches at each start, by the name
// of its file; "" where it fetches none.
func presetOf(program string) string {
	switch filepath.Base(program) {
	case "npx", "bunx", "pnpx":
		return "mcp-npx"
	case "uvx", "uv", "pipx":
		return "mcp-uvx"
	}
	return ""
}

// fetching are the lines of a preset that name hosts, and what it lets be started, each
// with its reason; "" where it has no hosts in a list of their own.
func fetching(preset []byte) string {
	_, list, found := strings.Cut("\n"+string(preset), "\nnet = [\n")
	lines, rest, closed := strings.Cut(list, "\n]")
	if !found || !closed {
		return ""
	}
	text := "net = [\n" + lines + "\n]\n"
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "exec = true") {
			text += line
		}
	}
	return text
}

// startingPolicy is the file of what a server may have, for its operator to edit.
func startingPolicy(s *Adopted, from string, preset []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What the MCP server %s may have. rlp mcp adopt wrote it for %s; edit it as you like.\n", s.Name,
		strings.ReplaceAll(from, "\n", " "))
	b.WriteString("# caps/overrides/" + s.Name + ".toml takes away, of its tools too: [deny] tools = [\"mcp:" + s.Name +
		"/TOOL\"].\n[capabilities]\n")
	list := func(key string, items []string, why string) {
		if len(items) > 0 {
			quoted := make([]string, len(items))
			for i, item := range items {
				quoted[i] = tomlfile.Literal(item)
			}
			fmt.Fprintf(&b, "%s = [%s] # %s\n", key, strings.Join(quoted, ", "), why)
		}
	}
	list("fs_ro", s.files, "its command names them; fs_rw lets it write")
	list("env", s.variables, "its client sets them")
	if hosts := fetching(preset); hosts != "" {
		fmt.Fprintf(&b, "# of the preset %s: rlp presets show %s\n%s", presetOf(s.command), presetOf(s.command), hosts)
	}
	return b.String()
}
