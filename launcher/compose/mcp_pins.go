package compose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/internal/effect/mcpclient"
)

// A Pin is what a server says of its tools, as it is known by: the file
// caps/mcp/<name>.json of the tenant. Beside it, as <name>+seen.json, lies what
// it said when that was something else.
type Pin struct {
	Version int              `json:"version"`
	Server  string           `json:"server"`
	Digest  string           `json:"digest"`
	At      time.Time        `json:"at"`
	Wrapped bool             `json:"wrapped,omitempty"` // by rlp mcp wrap; no setting names it
	Tools   []mcpclient.Tool `json:"tools"`
}

const (
	pinVersion = 1
	maxPin     = 16 << 20
)

// NewPin is what a server says of its tools at a moment.
func NewPin(server string, tools []mcpclient.Tool, at time.Time) *Pin {
	at = at.UTC().Truncate(time.Second)
	return &Pin{Version: pinVersion, Server: server, Digest: mcpclient.Digest(tools), At: at, Tools: tools}
}

// seenSuffix is that of no pin: no server's name has a "+" in it.
const SeenSuffix = "+seen.json"

// PinPath is where the pin of a server lies.
func PinPath(h home.Home, server string) string { return filepath.Join(h.Pins(), server+".json") }

// SeenPath is where that lies what a server said when it was something else.
func SeenPath(h home.Home, server string) string {
	return filepath.Join(h.Pins(), server+SeenSuffix)
}

// ReadPin is the pin in a file; nil when there is none. One that is not as it
// was written is an error: nothing is known by it, and nothing is made up.
func ReadPin(path, server string) (*Pin, error) {
	if _, err := os.Lstat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	text, err := tomlfile.ReadFile(path, maxPin)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what the server %s is known by: %w", server, err)
	}
	var p Pin
	if err = strictjson.Unmarshal(text, &p, strictjson.Enclosing); err == nil {
		err = p.compact()
	}
	if err != nil || p.Version != pinVersion || p.Server != server || p.Digest != mcpclient.Digest(p.Tools) {
		return nil, fmt.Errorf("what the server %s is known by is damaged: %s; put a copy back, or remove it to know the "+
			"server anew", server, path)
	}
	return &p, nil
}

// compact takes the indentation of the file out of schemas: their bytes are what
// is digested.
func (p *Pin) compact() error {
	for i := range p.Tools {
		var b bytes.Buffer
		if err := json.Compact(&b, p.Tools[i].Schema); err != nil {
			return err
		}
		p.Tools[i].Schema = b.Bytes()
	}
	return nil
}

// Write puts p into a file, private to the operator, whole or not at all. With
// first it takes nobody's place: fs.ErrExist when the file is there.
func (p *Pin) Write(path string, first bool) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(p); err != nil {
		return err
	}
	if err := home.Make(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if first {
		return os.Link(f.Name(), path)
	}
	return os.Rename(f.Name(), path)
}

// know is whether a server that says this of its tools is the one that it is
// known as. One that was not known is from now on: pinned says so. What a server
// says that is known as another is kept, for its operator to look at.
func know(h home.Home, said *Pin) (pinned bool, err error) {
	for _, t := range said.Tools { // what is written down is read again by the same rules
		if err := strictjson.Check(t.Schema); err != nil {
			return false, fmt.Errorf("the server %s describes its tool %q in JSON that is not read twice alike: %w", said.Server,
				t.Name, err)
		}
	}
	path := PinPath(h, said.Server)
	for range 2 {
		known, err := ReadPin(path, said.Server)
		switch {
		case err != nil:
			return false, err
		case known != nil && known.Digest == said.Digest:
			return false, nil
		case known != nil:
			if err := said.Write(SeenPath(h, said.Server), false); err != nil {
				return false, fmt.Errorf("keeping what the server %s says: %w", said.Server, err)
			}
			return false, errChanged
		}
		err = said.Write(path, true)
		if !errors.Is(err, fs.ErrExist) { // another run was first
			return err == nil, err
		}
	}
	return false, fmt.Errorf("keeping what the server %s says: %s comes and goes", said.Server, path)
}

var errChanged = errors.New("the server says something else of its tools than it is known by")
