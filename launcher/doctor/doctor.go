// Package doctor looks for what keeps agents from being launched as they should be:
// in the home, in its settings, in what they name, and on the machine. Of each it
// says the command that mends it.
//
// It changes nothing, makes nothing and prints nothing.
package doctor

import (
	"context"
	"time"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/launcher/ask"
)

// A Finding is what one check found: nothing, or a problem and what mends it.
type Finding struct {
	Check   string `json:"check"`
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
	Mend    string `json:"mend,omitempty"`    // a command, or what to write
	Note    string `json:"note,omitempty"`    // what is no problem, and may not be what was meant
	Skipped string `json:"skipped,omitempty"` // why nothing was looked at: another problem, which is told
}

// A Patient is what is looked at.
type Patient struct {
	Home   string // the folder, there or not
	Tenant string
	Env    []string // variables that lie over config.toml
	Now    time.Time
	UID    int

	Free func(dir string) (uint64, error) // bytes that may be written
	// Lanes tries lanes, and says which one "auto" takes; nil: none is tried.
	Lanes   func(ctx context.Context, names []string) (ask.LaneSurvey, error)
	Secrets func(context.Context, home.Home) ([]string, error) // the ids that there are
	Program func(name string) error                            // why a program cannot be started; nil: it can
	// Policies lints what launches read of the home: overrides, profiles, templates.
	Policies func(home.Home, config.Config) []policy.Finding
}

// A checkup collects what is found.
type checkup struct {
	Patient
	list []Finding
}

// Examine makes every check. What there is no home for yet is in order.
func Examine(ctx context.Context, p Patient) []Finding {
	c := &checkup{Patient: p}
	there, ours := c.home()
	c.disk()
	c.clock()
	h := home.At(p.Home, p.Tenant)
	if ours {
		c.permissions()
		c.keys(h)
		c.locks()
	}
	read := config.Load
	if !there {
		read = func(path string, env []string) (config.Config, error) { return config.Parse(path, nil, env) }
	}
	cfg, err := read(h.Config(), p.Env)
	c.settings(err, h)
	if why := c.unopened(); why != "" {
		for _, check := range []string{"policies", "providers", "runtimes", "lanes"} {
			c.list = append(c.list, Finding{Check: check, Skipped: "not looked at, because " + why})
		}
		return c.list
	}
	c.policies(h, cfg)
	c.providers(ctx, h, &cfg)
	c.runtimes(&cfg)
	c.lanes(ctx, &cfg)
	return c.list
}

// unopened says why a launch would not come to what settings name; "": it would.
func (c *checkup) unopened() string {
	why := map[string]string{
		"home": "the home cannot be used", "permissions": "the home cannot be used",
		"settings": "the settings cannot be read",
	}
	for _, f := range c.list {
		if f.Problem != "" && why[f.Check] != "" {
			return why[f.Check]
		}
	}
	return ""
}

// found notes what a check found; a problem of "" is none, which is noted once.
func (c *checkup) found(check, problem, mend string) {
	c.list = append(c.list, Finding{Check: check, OK: problem == "", Problem: problem, Mend: mend})
}

// fine notes that a check found nothing, unless it found something.
func (c *checkup) fine(check string) {
	for _, f := range c.list {
		if f.Check == check {
			return
		}
	}
	c.found(check, "", "")
}

// Well reports whether nothing was found.
func Well(list []Finding) bool {
	for _, f := range list {
		if f.Problem != "" {
			return false
		}
	}
	return true
}
