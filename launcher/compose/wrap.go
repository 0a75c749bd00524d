package compose

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/launcher/run"
)

// A Wrap is one server of tools that a client is given under a policy. It is an
// agent of its name: overrides, profiles, records and reports are that agent's.
type Wrap struct {
	Name    string
	Command []string           // its program and the arguments; or
	URL     string             // where it is
	Secrets []config.MCPSecret // the variables, or the bearer token, that have a secret's value
	Policy  string             // a file with what it asks for beside Flags.Allow; "" is none

	// Serve speaks with the client until that is at its end.
	Serve func(ctx context.Context, w *Wrapped) error
	// Ask asks the client's person; nil: nobody can be asked. It says no, and why,
	// where the client's word does not count.
	Ask hostcalls.Confirm

	given   []config.MCPSecret // what the run holds of Secrets
	env     []string           // variables that the run was given
	folders caps.Set           // whose files the program sees
	unfit   *run.Stopped       // why no lane here takes the program
}

// bundle is the session as an agent without files.
func (w *Wrap) bundle() (*bundles.Bundle, error) {
	agent, err := ident.ParseAgent(w.Name)
	if err != nil {
		return nil, usagef("rlp mcp wrap %s: NAME is %w", w.Name, err)
	}
	if err := w.whole(); err != nil {
		return nil, err
	}
	said, err := json.Marshal([]any{w.Command, w.URL})
	if err != nil {
		return nil, inputErr(err)
	}
	sum := sha256.Sum256(said)
	return &bundles.Bundle{Manifest: &bundles.Manifest{Agent: agent}, Digest: hex.EncodeToString(sum[:]), Bare: true}, nil
}

// forPrograms are capabilities as a program can have them: one that may write in a
// folder reads it and deletes there, for no lane parts these.
func forPrograms(list []string) []string {
	var all []string
	for _, text := range list {
		all = append(all, text)
		if path, writes := strings.CutPrefix(text, "fs:write:"); writes {
			all = append(all, "fs:read:"+path, "fs:delete:"+path)
		}
	}
	return all
}

// whole refuses what is no server.
func (w *Wrap) whole() error {
	if (len(w.Command) > 0) == (w.URL != "") {
		return usagef("rlp mcp wrap %s takes either -- COMMAND ARGS... or --url URL", w.Name)
	}
	if w.URL != "" {
		if err := config.ServerAddress(w.URL); err != "" {
			return usagef("--url %s", err)
		}
		if len(w.Secrets) > 1 || len(w.Secrets) == 1 && w.Secrets[0].Variable != "" {
			return usagef("a server at a URL takes one --secret ID, its bearer token, without a variable's name")
		}
		return nil
	}
	for i, s := range w.Secrets {
		if s.Variable == "" {
			w.Secrets[i].Variable = config.SecretVariable(s.ID)
		}
	}
	if !filepath.IsAbs(w.Command[0]) || filepath.Clean(w.Command[0]) != w.Command[0] {
		return usagef("%s: write the command as an absolute path, such as %s; which program a name leads to depends on PATH",
			w.Command[0], "/usr/bin/node")
	}
	return nil
}

// asks is what the session asks for by itself: its server, the secrets that it is
// given, and to read what its command names by absolute paths.
func (w *Wrap) asks() ([]string, error) {
	list := []string{"mcp:call:" + w.Name}
	for _, s := range w.Secrets {
		list = append(list, "secrets:read:"+s.ID)
	}
	if len(w.Command) == 0 {
		return list, nil
	}
	for _, arg := range w.Command[1:] {
		if !filepath.IsAbs(arg) || filepath.Clean(arg) != arg || lane.IsSystem(arg) {
			continue
		}
		at, err := lane.Resolve(arg)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, inputErr(fmt.Errorf("%s: %w", arg, err))
		}
		list = append(list, "fs:read:"+at.File)
	}
	return list, nil
}

// admits makes w one of the settings' servers, for this composition alone. A name
// that leads to another one is refused, so that one name is one server in every
// policy and record.
func (w *Wrap) admits(cfg *config.Config, path string) error {
	if w.Name == hostcalls.ToolServer {
		return usagef("rlp mcp wrap %s: the name is taken by the tools that bundles bring; take another one", w.Name)
	}
	if _, taken := cfg.MCP[w.Name]; taken {
		return usagef("rlp mcp wrap %s: %s has [mcp.servers.%s]; take another name, or remove that", w.Name, path,
			w.Name)
	}
	servers := maps.Clone(cfg.MCP)
	if servers == nil {
		servers = map[string]config.MCPServer{}
	}
	servers[w.Name] = config.MCPServer{Command: w.Command, URL: w.URL, Secrets: w.Secrets}
	cfg.MCP = servers
	return nil
}

// decisive are the files that decide what the session is: its program cannot write
// them, so that the next one starts the same.
func (w *Wrap) decisive() []string {
	var list []string
	if len(w.Command) > 0 {
		list = append(list, w.Command[0])
	}
	if w.Policy != "" {
		list = append(list, w.Policy)
	}
	return list
}

// confined refuses to run a wrapped program where nothing is kept from it.
func (w *Wrap) confined(l lane.Lane, err error) error {
	var unsupported *lane.UnsupportedError
	why := ""
	switch {
	case errors.As(err, &unsupported):
		why = unsupported.Text()
	case err == nil && l.Name() == "native":
		why = `[exec] lane = "native" confines no program; take "auto", or give the server as --url`
	default:
		return err
	}
	w.unfit = &run.Stopped{Outcome: run.Unsupported, Status: run.StatusUnsupported, Message: w.Name + ": " + why}
	if err == nil {
		err = errors.Join(w.unfit, l.Close())
	}
	return err
}
