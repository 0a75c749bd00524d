package ask

import (
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher/places"
	"runloop.dev/rlp/launcher/run"
)

// A Telling is what who does not operate is told of launches of an agent: nothing of the
// layer that keeps what is the host's own, and of the paths of a bundle that they sent
// what they wrote themselves, never where it leads.
type Telling struct {
	names  *places.Names
	base   []string // what the bundle asks for, as it may be told
	spared []string // the folders within what is protected that are not
	sent   bool
}

// Telling is what is told of launches of s, to whom n names places; sent says that the
// bundle is theirs.
func (s *Subject) Telling(n *places.Names, sent bool) *Telling {
	if sent {
		n = n.AsWritten()
	}
	n = s.Names(n)
	var grants []caps.Grant
	for _, e := range s.Policy.Base {
		grants = append(grants, e.Grant)
	}
	return &Telling{n, n.Capabilities(run.GrantStrings(grants)), Spared(s.Policy), sent}
}

// Spared are the folders within what is protected that are not.
func Spared(p run.Policy) (list []string) {
	for _, l := range p.Layers {
		if l.Name == caps.ProtectedLayer {
			for _, e := range l.Spare {
				list = append(list, e.Grant.Scope)
			}
		}
	}
	return list
}

// of is the layer of a capability as it may be told; false: the capability is of a
// path that was not asked for.
func (t *Telling) of(capability string, layer *string) bool {
	path := strings.HasPrefix(capability, "fs:") || strings.HasPrefix(capability, "process:exec:")
	mine := *layer == caps.ProtectedLayer
	*layer = places.LayerName(*layer)
	return !(mine || path && t.sent) || slices.Contains(t.base, capability)
}

// Report is a report without what may not be told.
func (t *Telling) Report(r *run.Report) *run.Report {
	told := r.For(t.names)
	told.Except = nil
	told.Effective = t.names.Capabilities(places.Unspared(r.Effective, r.Base, t.spared))
	changes := []run.Change{}
	for _, ch := range told.Changes {
		if t.of(ch.Capability, &ch.Layer) {
			changes = append(changes, ch)
		}
	}
	told.Changes = changes
	for i := range told.Tools {
		told.Tools[i].Layer = places.LayerName(told.Tools[i].Layer)
	}
	told.Violations = t.violations(told.Violations)
	return told
}

// violations are the reasons of a refusal without what was carved out of a
// capability: the rest of that was taken too.
func (t *Telling) violations(list []run.Violation) (told []run.Violation) {
	for _, v := range list {
		if v.Capability == "" || t.of(v.Capability, &v.Layer) {
			told = append(told, v)
		}
	}
	return told
}
