//go:build !slim

package main

import (
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/config"
	"runloop.dev/rlp/internal/home"
	"runloop.dev/rlp/internal/ident"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/secrets"
)

// secretsPart gives a run its secrets, where the bundle asks for any, or a
// provider of models or a server of tools is given one. The vault is opened when a handle is asked for.
func secretsPart(a *app, c *composition, spec *launcher.Spec) (func() error, error) {
	asks := func(f caps.Family) bool {
		return slices.ContainsFunc(spec.Policy.Base, func(e caps.Entry) bool { return e.Grant.Family == f })
	}
	keys := slices.ContainsFunc(c.config.Model.Providers, func(p config.Provider) bool { return p.SecretID != "" })
	servers := asks(caps.MCP) && givesServersSecrets(c.config)
	if !asks(caps.Secrets) && !(keys && asks(caps.Model)) && !servers {
		return nil, nil
	}
	run := secrets.NewRun(func() (secrets.Provider, error) { return a.secretProvider(c.home, c.config) })
	spec.Components.Secrets, c.secret = run, run.Reveal
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

// secretProvider is where the secrets of the tenant are kept.
func (a *app) secretProvider(h home.Home, cfg config.Config) (secrets.Provider, error) {
	tenant, err := ident.ParseTenant(h.Tenant())
	if err != nil {
		return nil, usagef("--tenant: %w", err)
	}
	p, err := secrets.Open(secrets.Config{
		Provider: cfg.Security.SecretsProvider, Tenant: tenant, Dir: h.Secrets(), Env: a.env,
		Command: cfg.Security.SecretsCommand, CommandEnv: cfg.Security.SecretsEnv,
	})
	if err != nil {
		return nil, inputErr(err)
	}
	return p, nil
}
