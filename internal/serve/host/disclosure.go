package host

import (
	"maps"
	"path/filepath"
	"slices"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/places"
)

// tellSurface takes out of a surface what may not be told.
func tellSurface(n *places.Names, who *service.Caller, c *compose.Composition, s *service.Surface) {
	if who.Can(service.Operate) {
		return
	}
	s.Layers = slices.DeleteFunc(s.Layers, func(l string) bool { return l == caps.ProtectedLayer })
	for _, f := range s.Families {
		delete(f.Constraints, "except")
		if allowed, is := f.Constraints["allow"].([]string); is {
			f.Constraints["allow"] = n.Capabilities(places.Unspared(allowed, nil, ask.Spared(c.Policy)))
		}
	}
}

// places are the names of what is in the home, as it is named and without links.
func (h *Host) places() *places.Names {
	if real, err := filepath.EvalSymlinks(h.home); err == nil && real != h.home {
		return places.Of(h.home, real)
	}
	return places.Of(h.home)
}

// named is how what is on the host is told to others in records of one agent.
type named struct {
	files [2]compose.FileState // of the overrides that say it
	names *places.Names
}

// namesOf are how what is on the host is told to others in a record of a run.
func (h *Host) namesOf(run *audit.Head) *places.Names {
	h.mu.Lock()
	_, sent := h.sent[run.RunID]
	h.mu.Unlock()
	if sent {
		return h.places().AsWritten()
	}
	return h.names(run.Tenant, run.Agent)
}

// names are the same in what is about an agent of a tenant: its placeholders stand for
// what the operator's files say, and for what it was launched with here.
func (h *Host) names(tenant, agent string) *places.Names {
	a, key, now := h.as(tenant, unsaid), tenant+"\x00"+agent, named{}
	at, err := a.Home()
	if err != nil {
		return h.places().Hide()
	}
	for i, name := range []string{"_default", agent} {
		now.files[i] = compose.StateOf(at.Override(name))
	}
	h.mu.Lock()
	old, known := h.named[key]
	launched := h.launched[key]
	h.mu.Unlock()
	if known && old.files == now.files {
		return old.names
	}
	if now.names = launched; launched == nil {
		now.names = h.places()
	}
	params, err := a.Params(agent)
	if err != nil {
		return now.names.Hide()
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		now.names = now.names.Param(name, params[name])
		if real, err := filepath.EvalSymlinks(params[name]); err == nil {
			now.names = now.names.Param(name, real)
		}
	}
	if now.sure(h.now()) {
		h.mu.Lock()
		if len(h.named) >= mostNamed {
			clear(h.named)
		}
		h.named[key] = now
		h.mu.Unlock()
	}
	return now.names
}

// Bounds of what is remembered: agents, and runs of bundles that came with requests.
const (
	mostNamed = 1024
	mostSent  = 1 << 14
)

// sure reports whether the names are those of the files for as long as these are as
// they were.
func (n *named) sure(now time.Time) bool {
	return !slices.ContainsFunc(n.files[:], func(f compose.FileState) bool {
		return f != compose.FileState{} && !f.Sure(now)
	})
}

// launches notes of a launch whether its bundle was sent, and what placeholders stand
// for in it: requests of who operates say it, too.
func (h *Host) launches(c *compose.Composition, tenant string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.Origin.Sent {
		if len(h.sent) >= mostSent {
			clear(h.sent)
		}
		h.sent[c.Origin.RunID] = struct{}{}
		return
	}
	key := tenant + "\x00" + c.Bundle.Manifest.Agent.String()
	if s := c.Subject(); len(s.Params) > 0 {
		n := h.launched[key]
		if n == nil {
			n = h.places()
		}
		h.launched[key] = s.Names(n)
		delete(h.named, key)
	}
}
