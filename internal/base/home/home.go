// Package home is the layout of $RUNLOOP_HOME: where each thing lies, for one
// tenant. It creates folders private to their owner and refuses a home that
// somebody else could write to.
package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"runloop.dev/rlp/internal/base/owner"
)

// tokens is the folder of the service's tokens.
const tokens = "tokens"

// DefaultTenant is the tenant whose things lie directly in the home.
const DefaultTenant = "default"

// A Home is a home as one tenant sees it.
type Home struct {
	dir, tenant string
}

// Locate returns the home that flag, $RUNLOOP_HOME and the user's home
// directory say, in this order; it touches nothing.
func Locate(flag, runloopHome, userHome string) (string, error) {
	for _, dir := range []string{flag, runloopHome} {
		if dir != "" {
			return filepath.Abs(dir)
		}
	}
	if userHome == "" {
		return "", errors.New("locating the home: neither --home, RUNLOOP_HOME nor HOME is set")
	}
	return filepath.Join(userHome, ".runloop"), nil
}

// Open makes the home if it is not there (0700) and checks that nobody else
// can write to it.
func Open(dir, tenant string) (Home, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Home{}, fmt.Errorf("making the home: %w", err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Home{}, fmt.Errorf("opening the home: %w", err)
	}
	h := Home{dir: real, tenant: tenant}
	if err := h.own(); err != nil {
		return Home{}, fmt.Errorf("opening the home: %w", err)
	}
	// The folder of overrides is always there, so that an override that is not
	// in it is the only way in which there is none.
	overrides := filepath.Dir(h.Override(""))
	if err := os.MkdirAll(overrides, 0o700); err != nil {
		return Home{}, fmt.Errorf("opening the home: %w", err)
	}
	for _, dir := range h.Guarded() {
		if err := h.private(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Home{}, fmt.Errorf("opening the home: %w", err)
		}
	}
	return h, nil
}

// At is the home at dir, which is there or not: it is for asking where things lie.
func At(dir, tenant string) Home {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return Home{dir: dir, tenant: tenant}
}

// Guarded are the folders that nobody else may write to, where they are there.
func (h Home) Guarded() []string {
	overrides := filepath.Dir(h.Override(""))
	return append(h.parts(), h.dir, filepath.Dir(overrides), overrides)
}

// parts are the folders of the home that hold what decides, records or runs.
func (h Home) parts() []string {
	var list []string
	for _, name := range []string{"caps/templates", "caps/profiles", "run", "tenants", tokens} {
		list = append(list, filepath.Join(h.dir, filepath.FromSlash(name)))
	}
	for _, name := range append([]string{""}, kept...) {
		list = append(list, filepath.Join(h.Root(), name))
	}
	return list
}

// kept are the folders of a tenant that no agent is ever granted.
var kept = []string{"agents", "kb", "journal", "secrets", "cache", "log", "work", "caps/mcp"}

// logFiles is how the names of files begin that a tenant's log has in the
// tenant's root: its key, and who was told of it.
const logFiles = "audit."

// private refuses what is no folder, or one that another user could change. A
// link is no folder: what lies behind it is outside the home, where an agent
// may have been given the right to write.
func (h Home) private(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a symbolic link; the home keeps its folders itself", path)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", path)
	}
	if who, mend := h.Writers(path, info); who != "" {
		return fmt.Errorf("%s is writable by %s; run chmod %s on it", path, who, mend)
	}
	return Owned(path, info)
}

// Writers says who besides its owner may write to a folder of the home, and the
// mode that chmod takes to end it; "" is nobody. No group may write to what holds
// secrets or tokens, the owner's private one included.
func (h Home) Writers(path string, info fs.FileInfo) (who, mend string) {
	if path == h.Secrets() || path == filepath.Join(h.dir, tokens) {
		return owner.Strangers(info)
	}
	return owner.WritersAt(path, info)
}

// Dir is the home itself, with links resolved.
func (h Home) Dir() string { return h.dir }

// Tenant is the tenant of h.
func (h Home) Tenant() string { return h.tenant }

// Root is the folder that holds the tenant's own things.
func (h Home) Root() string {
	if h.tenant == DefaultTenant {
		return h.dir
	}
	return filepath.Join(h.dir, "tenants", h.tenant)
}

// Config is the path of config.toml, of every tenant.
func (h Home) Config() string { return filepath.Join(h.dir, "config.toml") }

// Override is the operator's override of one agent; "_default" applies to all.
func (h Home) Override(agent string) string {
	return filepath.Join(h.dir, "caps", "overrides", agent+".toml")
}

// Profile is the file of a named profile.
func (h Home) Profile(name string) string {
	return filepath.Join(h.dir, "caps", "profiles", name+".toml")
}

// Preset is the file of a preset, which replaces a built-in one of that name.
func (h Home) Preset(name string) string {
	return filepath.Join(h.dir, "caps", "presets", name+".toml")
}

// Template is the file of a named capability template.
func (h Home) Template(name string) string {
	return filepath.Join(h.dir, "caps", "templates", name+".toml")
}

// Work is the working folder of one run, where its programs start.
func (h Home) Work(agent, run string) string { return filepath.Join(h.Root(), "work", agent, run) }

// Artifacts is what of the home the tenant's agents may be granted, and the only such place.
func (h Home) Artifacts() string { return filepath.Join(h.Root(), artifacts) }

// Agents is where the tenant's installed bundles lie.
func (h Home) Agents() string { return filepath.Join(h.Root(), "agents") }

// Secrets is where the tenant's secrets lie.
func (h Home) Secrets() string { return filepath.Join(h.Root(), "secrets") }

// Cache is where compiled modules lie; Log the JSON lines of decisions.
func (h Home) Cache() string { return filepath.Join(h.Root(), "cache") }

// Journal is where the runs of the tenant append their records.
func (h Home) Journal() string { return filepath.Join(h.Root(), "journal") }

// Log is the folder of the JSON lines.
func (h Home) Log() string { return filepath.Join(h.Root(), "log") }

// Make makes a folder of the home, private to its owner.
func Make(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	return nil
}

// ServeSocket is where rlp serve listens in the home at dir, unless it is told otherwise.
func ServeSocket(dir string) string { return filepath.Join(dir, "run", "serve.sock") }
