package compose

import (
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/model"
	"runloop.dev/rlp/internal/effect/model/remote"
	"runloop.dev/rlp/launcher/run"
)

// modelPart gives a run its models, where the bundle asks for any. Providers
// are asked by a process of its own: their libraries would cost every launch
// more than all the rest of it. That process is started by the first call that
// needs it.
func modelPart(a *Runner, c *Composition, spec *run.Spec) (func() error, error) {
	if !slices.ContainsFunc(spec.Policy.Base, func(e caps.Entry) bool { return e.Grant.Family == caps.Model }) {
		return nil, nil
	}
	cfg := c.Config.Model
	host := remote.New(a.modelHost)
	broker := model.Config{
		Default: cfg.Default, Cache: cfg.Cache, Backend: host, Key: c.secret, Now: spec.Now,
		Prices: make(map[string]model.Price, len(cfg.Prices)),
	}
	for name, p := range cfg.Prices {
		broker.Prices[name] = model.Price(p)
	}
	for _, p := range cfg.Providers {
		broker.Providers = append(broker.Providers, model.Provider(p))
	}
	if c.Origin.from != nil {
		broker.Above = c.Origin.from.common.broker
	}
	c.common.broker = model.New(broker)
	spec.Components.Model = c.common.broker
	return host.Close, nil
}

// modelHost is how the process that asks providers is started. It knows where
// the certificates are that the operator trusts, and nothing else of the
// environment: no proxy, no key, no home.
func (a *Runner) modelHost() (remote.Command, error) {
	path, args, err := a.ModelHost()
	if err != nil {
		return remote.Command{}, err
	}
	cmd := remote.Command{Path: path, Args: args}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if v, set := a.lookup(name); set {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	return cmd, nil
}
