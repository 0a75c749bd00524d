package servers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// A client is a program that starts MCP servers: where its settings name them.
type client struct {
	name   string
	tables [][]string // each table of servers: its path, "*" standing for every key
	toml   bool
	files  []string // the ends of paths by which its settings are known
}

// clients are those whose settings are understood.
func clients() []client {
	return []client{
		{
			name: "claude", tables: [][]string{{"mcpServers"}, {"projects", "*", "mcpServers"}},
			files: []string{"/.mcp.json", "/.claude.json", "/claude_desktop_config.json", "/.claude/settings.json"},
		},
		{name: "cursor", tables: [][]string{{"mcpServers"}}, files: []string{"/.cursor/mcp.json"}},
		{
			name: "vscode", tables: [][]string{{"servers"}, {"mcp", "servers"}},
			files: []string{"/.vscode/mcp.json", "/Code/User/mcp.json", "/Code/User/settings.json", "/.vscode/settings.json"},
		},
		{name: "codex", tables: [][]string{{"mcp_servers"}}, toml: true, files: []string{"/.codex/config.toml"}},
		{
			name: "zed", tables: [][]string{{"context_servers"}},
			files: []string{"/zed/settings.json", "/.zed/settings.json"},
		},
	}
}

// Clients are the names of clients whose settings are understood.
func Clients() []string {
	var list []string
	for _, c := range clients() {
		list = append(list, c.name)
	}
	return list
}

// clientOf is the client of a name or, without one, the one whose settings a file
// is by its path.
func clientOf(name, path string) (client, error) {
	for _, c := range clients() {
		isHere := func(end string) bool { return strings.HasSuffix(filepath.ToSlash(path), end) }
		byPath := slices.ContainsFunc(c.files, isHere)
		if c.name == name || name == "" && byPath {
			return c, nil
		}
	}
	if name == "" {
		return client{}, usage("%s: whose settings these are is not known by the path; add --client %s", path,
			strings.Join(Clients(), "|"))
	}
	return client{}, usage("--client %s is one of %s", name, strings.Join(Clients(), ", "))
}

// mostSettings bounds the settings of a client, in bytes.
const mostSettings = 16 << 20

func (c *client) parse(path string, data []byte) (*tomlfile.Table, error) {
	if c.toml {
		return tomlfile.ParseMax(path, data, mostSettings)
	}
	return tomlfile.ParseJSONC(path, data, mostSettings)
}

// plain is the text without comments, as long as it is with them.
func (c *client) plain(data []byte) []byte {
	if c.toml {
		return data
	}
	return tomlfile.Uncommented(data)
}

// A place is one server in a client's settings.
type place struct {
	path  []string // of the keys that lead to it
	entry *tomlfile.Entry
}

// places are the servers that a document names.
func (c *client) places(root *tomlfile.Table) ([]place, error) {
	var list []place
	for _, path := range c.tables {
		found, err := under(root, nil, path)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

// under are the servers in a table of them, which rest leads to from t.
func under(t *tomlfile.Table, path, rest []string) ([]place, error) {
	var list []place
	for i := range t.Entries {
		e := &t.Entries[i]
		here := append(slices.Clone(path), e.Key)
		switch {
		case len(rest) == 0:
			if e.Value.Kind != tomlfile.TableKind {
				return nil, wrong(e, here, "is %s; a server is an object with command or url", e.Value.Kind)
			}
			list = append(list, place{here, e})
		case rest[0] != "*" && rest[0] != e.Key:
		case e.Value.Kind == tomlfile.TableKind:
			found, err := under(e.Value.Table, here, rest[1:])
			if err != nil {
				return nil, err
			}
			list = append(list, found...)
		case rest[0] != "*":
			return nil, wrong(e, here, "is %s; an object of servers is wanted", e.Value.Kind)
		}
	}
	return list, nil
}

// wrong is an error at a key of a client's settings.
func wrong(e *tomlfile.Entry, path []string, format string, args ...any) error {
	return input(&tomlfile.Error{Pos: e.Pos, Msg: strings.Join(path, ".") + " " + fmt.Sprintf(format, args...)})
}
