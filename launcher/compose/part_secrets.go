package compose

import (
	"cmp"
	"net/url"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/launcher/run"
	"runloop.dev/rlp/secrets"
)

// runSecrets are the secrets of a run.
type runSecrets = *secrets.Run

// secretsPart gives a run its secrets, where the bundle asks for any, a provider
// of models or a server of tools is given one, or there are some that the run must
// not see: those of the run that launches it, and those that a host was sent. The
// vault is opened when a value is needed.
func secretsPart(a *Runner, c *Composition, spec *run.Spec) (func() error, error) {
	asks := func(f caps.Family) bool {
		return slices.ContainsFunc(spec.Policy.Base, func(e caps.Entry) bool { return e.Grant.Family == f })
	}
	keys := slices.ContainsFunc(c.Config.Model.Providers, func(p config.Provider) bool { return p.SecretID != "" })
	servers := asks(caps.MCP) && givesServersSecrets(c.Config)
	above := runSecrets(nil)
	if c.Origin.from != nil {
		above = c.Origin.from.secrets
	}
	if !asks(caps.Secrets) && !asks(caps.Net) && !(keys && asks(caps.Model)) && !servers && above == nil {
		return nil, nil
	}
	var bound []string
	run := secrets.NewRun(func() (secrets.Provider, error) { return a.SecretProvider(c.Home, c.Config) })
	for _, e := range spec.Policy.Base {
		if e.Grant.Family == caps.Secrets {
			bound = append(bound, e.Grant.Scope)
		}
	}
	run.Binds(bound)
	run.Remember(c.Home.Secrets(), settledSecrets(c.Config))
	if above != nil {
		run.Under(above)
	}
	spec.Components.Secrets, c.secrets, c.secret = run, run, run.Reveal
	return func() error { run.Close(); return nil }, nil
}

func givesServersSecrets(cfg config.Config) bool {
	for _, s := range cfg.MCP {
		if len(s.Secrets) > 0 {
			return true
		}
	}
	return false
}

// settledSecrets are those that config.toml has rlp itself send, by the canonical
// host:port that they go to: keys of providers of models, tokens of MCP servers.
func settledSecrets(cfg config.Config) map[string][]string {
	settled := map[string][]string{}
	add := func(id, to string) {
		u, err := url.Parse(to)
		if err != nil || id == "" {
			return
		}
		if host, err := caps.HostPort(u.Scheme, u.Host); err == nil {
			settled[host] = append(settled[host], id)
		}
	}
	for _, p := range cfg.Model.Providers {
		add(p.SecretID, cmp.Or(p.BaseURL, "https://api."+p.Kind+".com"))
	}
	for _, s := range cfg.MCP {
		for _, secret := range s.Secrets {
			add(secret.ID, s.URL)
		}
	}
	return settled
}

// SecretProvider is where the secrets of the tenant are kept.
func (a *Runner) SecretProvider(h home.Home, cfg config.Config) (secrets.Provider, error) {
	tenant, err := ident.ParseTenant(h.Tenant())
	if err != nil {
		return nil, Usagef("--tenant: %w", err)
	}
	p, err := secrets.Open(secrets.Config{
		Provider: cfg.Security.SecretsProvider, Tenant: tenant, Dir: h.Secrets(), Env: a.Env,
		Command: cfg.Security.SecretsCommand, CommandEnv: cfg.Security.SecretsEnv,
	})
	if err != nil {
		return nil, InputErr(err)
	}
	return p, nil
}
