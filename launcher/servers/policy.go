package servers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// A preset is what servers that are started by a program need, each host with its
// reason.
type preset struct {
	name     string
	programs []string // that start such servers, by the names of their files
	hosts    [][2]string
	fetches  bool // each start fetches the server
}

func presets() []preset {
	return []preset{
		{"mcp-npx", []string{"npx", "bunx", "pnpx"}, [][2]string{
			{"registry.npmjs.org", "npm's registry, which packages come from"},
		}, true},
		{"mcp-uvx", []string{"uvx", "uv", "pipx"}, [][2]string{
			{"pypi.org", "the index of Python's packages"},
			{"files.pythonhosted.org", "where these packages lie"},
		}, true},
	}
}

// presetOf is the preset for a command; a zero one says that none is for it.
func presetOf(command string) preset {
	for _, p := range presets() {
		if slices.Contains(p.programs, filepath.Base(command)) {
			return p
		}
	}
	return preset{}
}

// startingPolicy is the file of what a server may have, for its operator to edit.
func startingPolicy(s *Adopted, from string) string {
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
	if p := presetOf(s.command); len(p.hosts) > 0 {
		b.WriteString("net = [ # by the preset " + p.name + "\n")
		for _, h := range p.hosts {
			fmt.Fprintf(&b, "    %s, # %s\n", tomlfile.Literal(h[0]), h[1])
		}
		b.WriteString("]\n")
	}
	return b.String()
}
