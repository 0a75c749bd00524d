package model

import "strings"

// A Provider is one that the operator configured. Models are the names of what
// it offers, "*" at an end standing for the rest; none means all.
type Provider struct {
	ID       string
	Kind     string // "openai", "anthropic" or "local"
	BaseURL  string // "" is the usual one of its kind
	SecretID string // "" is no key
	Models   []string
}

// local is the provider that is always there.
const local = "local"

// A route is where a name leads.
type route struct {
	name     string // as it is judged: provider and model
	model    string // the provider's word for it
	provider *Provider
	isEcho   bool
}

// resolve finds out whom a name means. A name that begins with a provider's id
// and ":" is that provider's; any other is the first provider's whose models
// name it.
func (b *Broker) resolve(name string) route {
	if name == "" {
		name = b.cfg.Default
	}
	if id, model, ok := strings.Cut(name, ":"); ok {
		if p := b.provider(id); p != nil {
			return b.lead(p, name, model)
		}
	}
	for i := range b.cfg.Providers {
		p := &b.cfg.Providers[i]
		if len(p.Models) > 0 && p.offers(name) {
			return b.lead(p, p.ID+":"+name, name)
		}
	}
	return route{name: name}
}

func (b *Broker) provider(id string) *Provider {
	for i := range b.cfg.Providers {
		if b.cfg.Providers[i].ID == id {
			return &b.cfg.Providers[i]
		}
	}
	if id == local {
		return &Provider{ID: local, Kind: local}
	}
	return nil
}

func (b *Broker) lead(p *Provider, name, model string) route {
	r := route{name: name, model: model}
	if p.offers(model) {
		r.provider, r.isEcho = p, p.Kind == local
	}
	return r
}

func (p *Provider) offers(model string) bool {
	if p.Kind == local {
		return model == "echo"
	}
	for _, m := range p.Models {
		if matches(m, model) {
			return true
		}
	}
	return len(p.Models) == 0
}

// lost says what to write for a name that leads nowhere.
func (b *Broker) lost(name string) *Refusal {
	id, model, ok := strings.Cut(name, ":")
	if !ok {
		return refusef(NoProvider, "no provider offers %q; it would need [[model.providers]] id = ..., kind = ..., models "+
			"= [%q] in config.toml", name, name)
	}
	if p := b.provider(id); p != nil && p.Kind == local {
		return refusef(NoProvider, "the models of this process are %s alone", Echo)
	} else if p != nil {
		return refusef(NoProvider, "the provider %q does not offer it; its models would need %q in config.toml", id, model)
	}
	return refusef(NoProvider, "there is no provider %q; it would need [[model.providers]] id = %q, kind = ..., "+
		"base_url = ..., secret_id = ... in config.toml", id, id)
}
