package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
)

// settings tells what is wrong with config.toml.
func (c *checkup) settings(err error, h home.Home) {
	if err == nil {
		c.found("settings", "", "")
		return
	}
	c.found("settings", problem(err), c.mend(err, "edit "+h.Config()))
}

// providers looks for the secrets that the settings name: keys of models and of
// tool servers.
func (c *checkup) providers(ctx context.Context, h home.Home, cfg *config.Config) {
	const check = "providers"
	var wanted []string
	who := map[string]string{}
	want := func(id, by string) {
		if id != "" && who[id] == "" {
			wanted, who[id] = append(wanted, id), by
		}
	}
	for _, p := range cfg.Model.Providers {
		want(p.SecretID, "the model provider "+p.ID)
	}
	for name, s := range cfg.MCP {
		for _, secret := range s.Secrets {
			want(secret.ID, "the MCP server "+name)
		}
	}
	slices.Sort(wanted)
	if len(wanted) == 0 {
		c.found(check, "", "")
		return
	}
	ids, err := c.Secrets(ctx, h)
	if err != nil {
		c.found(check, fmt.Sprintf("the secrets that the settings name cannot be looked up: %v", err), "rlp secrets list")
		return
	}
	for _, id := range wanted {
		if !slices.Contains(ids, id) {
			c.found(check, fmt.Sprintf("there is no secret %s, which is the key of %s", id, who[id]), "rlp secrets put "+id)
		}
	}
	c.fine(check)
}

// runtimes looks for the programs that the settings name.
func (c *checkup) runtimes(cfg *config.Config) {
	const check = "runtimes"
	need := func(program, by, mend string) {
		if err := c.Program(program); err != nil {
			c.found(check, fmt.Sprintf("%s cannot be started, which is %s: %v", program, by, err), mend)
		}
	}
	if cfg.Exec.Lane == "container" && cfg.Exec.Engine != "" {
		need(cfg.Exec.Engine, "exec.engine", "apt install "+cfg.Exec.Engine+", or rlp config set exec.lane auto")
	}
	if command := cfg.Security.SecretsCommand; len(command) > 0 {
		need(command[0], "security.secrets.command", "install it, or rlp config set security.secrets.provider age")
	}
	var names []string
	for name, s := range cfg.MCP {
		if len(s.Command) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		need(cfg.MCP[name].Command[0], "mcp.servers."+name+".command", "install it, or correct the line in config.toml")
	}
	c.fine(check)
}

// lanes looks for the lane that programs of agents would run in, and for what that
// cannot enforce.
func (c *checkup) lanes(ctx context.Context, cfg *config.Config) {
	const check = "lanes"
	if c.Lanes == nil {
		return
	}
	name := cfg.Exec.Lane
	if name == "auto" {
		doc, err := c.Lanes(ctx, nil)
		if name = doc.Auto; err != nil || name == "" {
			c.found(check, fmt.Sprintf("there is no lane for programs of agents: %s%s", doc.Reason, said(err)),
				"apt install bubblewrap; rlp lanes says what each lane needs")
			return
		}
	}
	doc, err := c.Lanes(ctx, []string{name})
	if err != nil {
		c.found(check, err.Error(), "rlp lanes "+name)
		return
	}
	for _, l := range doc.Lanes {
		if l.Name != name {
			continue
		}
		if !l.Available {
			c.found(check, fmt.Sprintf("the lane %s is not available: %s", name, l.Reason), cmp.Or(l.Remedy, "rlp lanes "+name))
		}
		lacks, remedy := []string{}, ""
		for _, k := range l.Controls {
			if k.Level == "unsupported" && l.Available {
				lacks, remedy = append(lacks, k.Control), cmp.Or(remedy, k.Remedy)
			}
		}
		if len(lacks) > 0 {
			c.found(check, fmt.Sprintf("the lane %s cannot enforce %s", name, strings.Join(lacks, ", ")),
				cmp.Or(remedy, "rlp lanes "+name))
		}
	}
	c.fine(check)
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
