// Package servers answers questions about MCP servers for whoever operates: which
// there are, what each is known by, and how what one says now differs from that. It
// makes clients start their servers through rlp.
//
// It prints nothing. A file of a client is changed whole, or not at all, and a copy
// of what it was is kept first.
package servers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/effect/mcpclient"
	"runloop.dev/rlp/launcher/compose"
)

// A Server is one server as it is listed.
type Server struct {
	Name    string     `json:"name"`
	Command []string   `json:"command,omitempty"`
	URL     string     `json:"url,omitempty"`
	State   string     `json:"state"` // "unused", "known", "changed", "damaged" or "not_configured"
	Wrapped bool       `json:"wrapped,omitempty"`
	Digest  string     `json:"digest,omitempty"`
	Tools   int        `json:"tools"`
	Since   *time.Time `json:"since,omitempty"`
	Problem string     `json:"problem,omitempty"`
}

// List are the servers that are configured, and those that are known and are not, or
// are not any more.
func List(h home.Home, cfg config.Config) []Server {
	lines := []Server{}
	for _, name := range names(h, cfg) {
		lines = append(lines, server(h, cfg, name))
	}
	return lines
}

func names(h home.Home, cfg config.Config) []string {
	names := map[string]bool{}
	for name := range cfg.MCP {
		names[name] = true
	}
	entries, _ := os.ReadDir(h.Pins()) // none: nothing is known yet
	for _, e := range entries {
		name, pinned := strings.CutSuffix(e.Name(), ".json")
		if pinned && !strings.HasPrefix(name, ".") && !strings.HasSuffix(e.Name(), compose.SeenSuffix) {
			names[name] = true
		}
	}
	list := make([]string, 0, len(names))
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func server(h home.Home, cfg config.Config, name string) Server {
	from, configured := cfg.MCP[name]
	l := Server{Name: name, Command: from.Command, URL: from.URL, State: "unused"}
	known, err := compose.ReadPin(compose.PinPath(h, name), name)
	if known != nil {
		l.State, l.Digest, l.Tools, l.Since, l.Wrapped = "known", known.Digest, len(known.Tools), &known.At, known.Wrapped
		var seen *compose.Pin
		if seen, err = compose.ReadPin(compose.SeenPath(h, name), name); seen != nil && seen.Digest != known.Digest {
			l.State = "changed"
		}
	}
	if err != nil {
		l.State, l.Problem = "damaged", err.Error()
	}
	if !configured && !l.Wrapped {
		l.State = "not_configured"
	}
	return l
}

// A Change is what a server says now, beside what it is known by.
type Change struct {
	Server      string
	Known, Seen *compose.Pin
	Changes     []mcpclient.Change
	home        home.Home
}

// Changed is the change of a server that waits to be accepted; nil: there is none.
func Changed(h home.Home, cfg config.Config, name string) (*Change, error) {
	if !slices.Contains(names(h, cfg), name) {
		return nil, &compose.Error{Status: 2, Err: fmt.Errorf("there is no server %q; rlp mcp list shows those that there are",
			name)}
	}
	known, err := compose.ReadPin(compose.PinPath(h, name), name)
	if err != nil {
		return nil, input(err)
	}
	seen, err := compose.ReadPin(compose.SeenPath(h, name), name)
	if err != nil {
		return nil, input(err)
	}
	if known == nil || seen == nil || seen.Digest == known.Digest {
		return nil, nil
	}
	return &Change{name, known, seen, mcpclient.Diff(known.Tools, seen.Tools), h}, nil
}

// Accept makes what was seen what the server is known by.
func (c *Change) Accept() error {
	if err := c.Seen.Write(compose.PinPath(c.home, c.Server), false); err != nil {
		return input(fmt.Errorf("keeping what the server %s says: %w", c.Server, err))
	}
	if err := os.Remove(compose.SeenPath(c.home, c.Server)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return input(err)
	}
	return nil
}

// input is err with the status of what is wrong in a file; nil if it is none.
func input(err error) error {
	if err == nil {
		return nil
	}
	return &compose.Error{Status: 65, Err: err}
}
