package places

import (
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// untold takes the place of what was recorded of the host in words: they are not
// searched for paths.
const untold = "who operates the host is told why"

// Ended is what others than who operates are told of how a run ended: the message of an end that the agent or
// its limits brought about, and not what is said of the host.
func Ended(outcome, message string) string {
	switch outcome {
	case "refused", "unsupported", "audit_failed", "fault":
		if message != "" {
			return untold
		}
	}
	return message
}

// Record is a record of the log: paths in it are named as n does, and neither which
// paths the host keeps for itself is told, nor that one is.
func (n *Names) Record(r *audit.Record) *audit.Record {
	if n == nil {
		return r
	}
	told := *r
	if d := r.Decision; d != nil {
		of := *d
		switch family, _, _ := strings.Cut(d.Cap, "."); family {
		case "fs", "exec":
			of.Target = n.Path(d.Target)
		case "caps":
			of.Target = n.Capability(d.Target)
		}
		of.Layer, of.Label = LayerName(d.Layer), n.Capability(d.Label)
		told.Decision = &of
	}
	if e := r.Event; e != nil {
		told.Event = n.event(e)
	}
	return &told
}

func (n *Names) event(e *audit.Event) *audit.Event {
	of := *e
	var spared []string
	of.Layers = nil
	for i := range e.Layers {
		if l := &e.Layers[i]; l.Name != caps.ProtectedLayer {
			of.Layers = append(of.Layers, n.recorded(l))
		} else {
			for _, x := range l.Spare {
				spared = append(spared, x.Scope)
			}
		}
	}
	if e.Floor != nil {
		of.Floor = new(n.recorded(e.Floor))
	}
	of.Effective, of.Except = n.Capabilities(Unspared(e.Effective, e.Base, spared)), nil
	of.Base, of.Label = n.Capabilities(e.Base), n.Capability(e.Label)
	of.Message, of.Violations = Ended(e.Outcome, e.Message), nil
	if ofHost(e.Verb) {
		of.ErrorSummary, _, _ = strings.Cut(e.ErrorSummary, ": ") // the code, or the outcome
	}
	return &of
}

// ofHost reports whether the end of such a call may say in words what is on the host.
func ofHost(verb string) bool {
	i := slices.IndexFunc(caps.Tools(), func(t caps.ToolInfo) bool { return t.Name == verb })
	if i < 0 {
		return false
	}
	switch caps.Tools()[i].Family {
	case caps.FS, caps.Exec, caps.Agents, caps.MCP, caps.Tool:
		return true
	}
	return false
}

func (n *Names) recorded(l *audit.Layer) audit.Layer {
	told := *l
	told.File = n.File(l.File)
	for _, list := range []*[]audit.LayerEntry{&told.Bounds, &told.Allow, &told.Deny, &told.Spare, &told.Leases} {
		*list = slices.Clone(*list)
		for i := range *list {
			x := &(*list)[i]
			x.Scope, x.File = n.Path(x.Scope), n.File(x.File)
		}
	}
	return told
}

// LayerName is the name of a layer as it may be told.
func LayerName(name string) string {
	if name == caps.ProtectedLayer {
		return caps.HostLayer
	}
	return name
}

// Unspared are the capabilities that are left, but those of the folders that are
// spared within what is protected: these say where that is. What was asked for
// itself stays.
func Unspared(left, asked, spared []string) []string {
	return slices.DeleteFunc(slices.Clone(left), func(capability string) bool {
		return !slices.Contains(asked, capability) && slices.ContainsFunc(spared, func(dir string) bool {
			return strings.HasSuffix(capability, ":"+dir)
		})
	})
}
