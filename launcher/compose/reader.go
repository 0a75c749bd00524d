package compose

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/launcher/run"
)

// A Reader reads all that decides what agents may do. It takes nothing from the
// process by itself.
type Reader struct {
	Env        []string               // variables, as of a process
	HomeDir    string                 // the home; "": the usual one of Env
	HomeSet    bool                   // HomeDir was given
	Tenant     string                 // whose store, agents and log are used
	HomeThere  func() error           // why the home is not to be used now; nil: it is
	WorkingDir func() (string, error) // where relative paths begin
	Files      run.Resolver           // what leads to the operator's files
	Programs   func() []string        // the files that this program is
	Drafts     map[string][]byte      // overrides that are tried in the place of what lies at their paths
	StoreIn    string                 // a home without records that stands for a new tenant's; "": none
	Say        func(text string)      // is told at once that a floor is not used
	Added      []hostcalls.Added      // the host functions of the program that embeds
	Origin     Origin                 // of a launch of which nobody says more
}

// A Runner launches what a reader composed.
type Runner struct {
	*Reader
	Helper    string                                         // the program that children are; "": this one
	Kept      *Kept                                          // nil: this process launches one agent
	Self      func() (path string, err error)                // the program that compiles guests
	ModelHost func() (path string, args []string, err error) // the program that asks providers of models
	// where logs are shown to a person; nil: nobody asked for them
	Verbose io.Writer
}

// WorkingDir is where relative paths of this process begin.
func WorkingDir() (string, error) { return os.Getwd() }

// Canonical is what a path of the operator's leads to.
func Canonical(written string) (jail.Resolved, error) { return jail.Canonical(written) }

func (a *Reader) getenv(name string) string {
	v, _ := a.lookup(name)
	return v
}

func (a *Reader) lookup(name string) (string, bool) {
	for _, kv := range a.Env {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// Home opens the home that is read.
func (a *Reader) Home() (home.Home, error) {
	if a.HomeSet && a.HomeDir == "" {
		return home.Home{}, Usagef("--home is empty; leave it out for the usual home")
	}
	tenant, err := ident.ParseTenant(a.Tenant)
	if err != nil {
		return home.Home{}, Usagef("--tenant: %w", err)
	}
	dir, err := home.Locate(a.HomeDir, a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
	if err != nil {
		return home.Home{}, InputErr(err)
	}
	if a.HomeThere != nil { // before it is made anew
		if err := a.HomeThere(); err != nil {
			return home.Home{}, InputErr(err)
		}
	}
	h, err := home.Open(dir, tenant.String())
	if err != nil {
		return home.Home{}, InputErr(err)
	}
	return h, nil
}

// Settings opens the home and reads config.toml.
func (a *Reader) Settings() (home.Home, config.Config, error) {
	h, err := a.Home()
	if err != nil {
		return home.Home{}, config.Config{}, err
	}
	cfg, err := config.Load(h.Config(), a.Env)
	if err != nil {
		return home.Home{}, config.Config{}, InputErr(err)
	}
	return h, cfg, nil
}

// StoreSettings are the settings and the home whose log and knowledge base are asked.
func (a *Reader) StoreSettings() (home.Home, config.Config, error) {
	h, cfg, err := a.Settings()
	if err == nil && a.StoreIn != "" {
		h = home.At(a.StoreIn, h.Tenant())
	}
	return h, cfg, err
}

// Plan composes, and plans as a launch does.
func (a *Reader) Plan(path string, f Flags) (*Composition, run.Plan, error) {
	c, err := a.Compose(path, f)
	if err != nil {
		return nil, run.Plan{}, err
	}
	plan, err := run.NewPlan(c.Policy)
	if err != nil {
		return nil, run.Plan{}, InputErr(err)
	}
	return c, plan, nil
}

// from is path with the folder before it where it begins.
func (a *Reader) from(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := a.WorkingDir()
	return dir + "/" + path, err
}

// Wrapped composes a session in front of a server.
func (a *Reader) Wrapped(w *Wrap, f Flags) (*Composition, error) {
	agent, err := w.agent()
	if err != nil {
		return nil, err
	}
	own, err := w.asks()
	if err != nil {
		return nil, err
	}
	c := &Composition{Wrap: w}
	if len(w.Command) > 0 {
		w.Endless, c.Program = true, &w.Program
	}
	if c, err = (&madeUp{agent, []any{w.Command, w.URL}, own, w.Given}).compose(a, c, f); err != nil {
		return nil, err
	}
	c.Policy.Endless = true
	return c, nil
}
