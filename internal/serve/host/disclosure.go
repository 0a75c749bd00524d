package host

import (
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// A disclosure is what who does not operate is told of a launch: nothing of the layer
// that keeps what is the host's own, and of the paths of a bundle that they sent what
// they wrote themselves, never where it leads.
type disclosure struct {
	home func(text string) string // without the place of the home
	c    *compose.Composition
	base []string // what the bundle asks for, as it was written
}

// tell is how who is told of c; nil: they operate, and are told all.
func (h *Host) tell(who *service.Caller, c *compose.Composition) *disclosure {
	if who.Can(service.Operate) {
		return nil
	}
	t := &disclosure{home: func(text string) string { return h.homeless(who, text) }, c: c}
	var grants []caps.Grant
	for _, e := range c.Policy.Base {
		grants = append(grants, e.Grant)
	}
	t.base = t.written(launcher.GrantStrings(grants))
	return t
}

// text is a text as it may be told.
func (t *disclosure) text(s string) string {
	for _, r := range t.untold() {
		s = strings.ReplaceAll(s, r.Path, r.Written)
	}
	return t.home(s)
}

// untold are the paths of which it is not told where links lead: those of files that
// layers name, where the bundle does not name the same, and all that a bundle names
// which was sent.
func (t *disclosure) untold() []run.Redirect {
	return slices.DeleteFunc(slices.Clone(t.c.Paths.Redirects), func(r run.Redirect) bool {
		if r.Layer == "base" {
			return !t.c.Origin.Sent
		}
		return r.Family != caps.FS || r.Link == "" || slices.ContainsFunc(t.c.Policy.Base, func(e caps.Entry) bool {
			return e.Grant.Family == caps.FS && e.Grant.Scope == r.Path
		})
	})
}

// written are capabilities as they were written.
func (t *disclosure) written(list []string) []string {
	list, links := slices.Clone(list), t.untold()
	for i, capability := range list {
		for _, r := range links {
			verb, below, is := strings.Cut(capability, ":"+r.Path)
			if is && (below == "" || below[0] == '/') {
				list[i] = verb + ":" + r.Written + below
				break
			}
		}
	}
	return list
}

// of is a capability, and the layer that took it, as they may be told; false: it
// is of a path that was not asked for.
func (t *disclosure) of(capability, layer *string) bool {
	*capability = t.written([]string{*capability})[0]
	path := strings.HasPrefix(*capability, "fs:") || strings.HasPrefix(*capability, "process:exec:")
	mine := *layer == caps.ProtectedLayer
	if (mine || path && t.c.Origin.Sent) && !slices.Contains(t.base, *capability) {
		return false
	}
	if mine {
		*layer = caps.HostLayer
	}
	return true
}

// report takes out of a report what may not be told.
func (t *disclosure) report(r *launcher.Report) {
	if t == nil {
		return
	}
	r.Base, r.Except = t.written(r.Base), nil
	r.Effective = service.Unspared(t.written(r.Effective), r.Base, spared(t.c))
	r.Message = t.text(r.Message)
	changes := []launcher.Change{}
	for _, ch := range r.Changes {
		if t.of(&ch.Capability, &ch.Layer) {
			ch.Source = t.home(ch.Source)
			changes = append(changes, ch)
		}
	}
	r.Changes, r.Violations = changes, t.violations(r.Violations)
	var warnings, links []string
	for _, l := range t.untold() {
		links = append(links, l.String())
	}
	for _, w := range r.Warnings {
		if (!t.c.Origin.Sent || !slices.Contains(r.Beside, w)) && !slices.Contains(links, w) {
			warnings = append(warnings, t.text(w))
		}
	}
	r.Warnings = warnings
}

// violations are the reasons of a refusal without what was carved out of a
// capability: the rest of that was taken too.
func (t *disclosure) violations(list []launcher.Violation) (told []launcher.Violation) {
	for _, v := range list {
		if v.Capability == "" || t.of(&v.Capability, &v.Layer) {
			v.Message = strings.ReplaceAll(t.text(v.Message), "by "+caps.ProtectedLayer, "by the "+caps.HostLayer)
			told = append(told, v)
		}
	}
	return told
}

// refused takes out of a refusal what may not be told.
func (t *disclosure) refused(err *service.ViolationError) error {
	if t == nil {
		return err
	}
	told := *err
	told.Violations = t.violations(err.Violations)
	return &told
}

// spared are the folders within what is protected that are not.
func spared(c *compose.Composition) (list []string) {
	for _, l := range c.Policy.Layers {
		if l.Name == caps.ProtectedLayer {
			for _, e := range l.Spare {
				list = append(list, e.Grant.Scope)
			}
		}
	}
	return list
}

// tellSurface takes out of a surface what may not be told.
func tellSurface(who *service.Caller, c *compose.Composition, s *service.Surface) {
	if who.Can(service.Operate) {
		return
	}
	s.Layers = slices.DeleteFunc(s.Layers, func(l string) bool { return l == caps.ProtectedLayer })
	for _, f := range s.Families {
		delete(f.Constraints, "except")
		if allowed, is := f.Constraints["allow"].([]string); is {
			f.Constraints["allow"] = service.Unspared(allowed, nil, spared(c))
		}
	}
}
