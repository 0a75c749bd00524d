package config

import (
	"runloop.dev/rlp/internal/base/tomlfile"
)

func setBindings(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
	c.Delegation.Bindings = map[string]string{}
	eachEntry(w, name, v, agentName, func(e *tomlfile.Entry) {
		if !w.Is(&e.Value, e.Key, tomlfile.String) {
			return
		}
		if msg := profileName(e.Value.Str); msg != "" || e.Value.Str == "" {
			w.Errorf(e.Value.Pos, "", "%s must name a profile, not %q", e.Key, e.Value.Str)
			return
		}
		c.Delegation.Bindings[e.Key] = e.Value.Str
	})
}

// eachEntry calls do for each entry of the table v whose key passes ok.
func eachEntry(w *tomlfile.Walk, name string, v *tomlfile.Value, ok check, do func(e *tomlfile.Entry)) {
	if !w.Is(v, "["+name+"]", tomlfile.TableKind) {
		return
	}
	for i := range v.Table.Entries {
		e := &v.Table.Entries[i]
		if msg := ok(e.Key); msg != "" {
			w.Errorf(e.Pos, "", "%q in [%s] %s", e.Key, name, msg)
			continue
		}
		do(e)
	}
}

func setProviders(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
	if !w.Is(v, "[["+name+"]]", tomlfile.Array) {
		return
	}
	ids := map[string]bool{}
	for i := range v.Items {
		if !w.Is(&v.Items[i], "[["+name+"]]", tomlfile.TableKind) {
			continue
		}
		t := v.Items[i].Table
		w.Known(t, "id", "kind", "base_url", "secret_id", "models")
		w.Need(t, "id", "kind")
		p := Provider{
			ID:       checked(w, t, "id", serverName),
			Kind:     checked(w, t, "kind", oneOf("openai", "anthropic", "local")),
			BaseURL:  checked(w, t, "base_url", webAddress),
			SecretID: checked(w, t, "secret_id", secretID),
		}
		if e, ok := t.Get("models"); ok {
			p.Models = stringList(w, "models", &e.Value, modelPattern)
		}
		checkLocal(w, t, p)
		if ids[p.ID] {
			w.Errorf(t.Pos, "", "the provider %q is there already", p.ID)
		}
		ids[p.ID] = true
		c.Model.Providers = append(c.Model.Providers, p)
	}
}

// checkLocal refuses what would make "local" mean something else than this
// process: a run that asks local:echo is to reach no network.
func checkLocal(w *tomlfile.Walk, t *tomlfile.Table, p Provider) {
	if p.Kind != "local" && p.ID == "local" {
		w.Errorf(t.Pos, "", `the provider "local" is this process; give yours another id`)
	}
	for _, key := range []string{"base_url", "secret_id"} {
		if e, ok := t.Get(key); ok && p.Kind == "local" {
			w.Errorf(e.Pos, "", `a provider of kind "local" is this process and has no %s`, key)
		}
	}
}

func checked(w *tomlfile.Walk, t *tomlfile.Table, key string, ok check) string {
	v, there := w.Get(t, key, tomlfile.String)
	if !there {
		return ""
	}
	if msg := ok(v.Str); msg != "" {
		w.Errorf(v.Pos, "", "%s %s%s", key, msg, rejected(v.Str))
		return ""
	}
	return v.Str
}

func setPrices(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
	c.Model.Prices = map[string]Price{}
	eachEntry(w, name, v, modelPattern, func(e *tomlfile.Entry) {
		if w.Is(&e.Value, "["+name+"."+e.Key+"]", tomlfile.TableKind) {
			t := e.Value.Table
			w.Known(t, "in", "out")
			w.Need(t, "in", "out")
			c.Model.Prices[e.Key] = Price{In: price(w, t, "in"), Out: price(w, t, "out")}
		}
	})
}

// price refuses what would make a budget meaningless: a negative price, an
// infinite one, and "nan", which compares with nothing.
func price(w *tomlfile.Walk, t *tomlfile.Table, key string) float64 {
	n, ok := w.Number(t, key)
	if ok && !(n >= 0 && n <= 1e9) {
		e, _ := t.Get(key)
		w.Errorf(e.Value.Pos, "", "%s must be a price in US dollars a million tokens, 0 or more", key)
	}
	return n
}
