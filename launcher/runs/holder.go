package runs

import (
	"strings"

	"runloop.dev/rlp/caps"
)

// Grants parses what the record of a run's beginning says that the run held.
func Grants(words []string) []caps.Grant {
	var list []caps.Grant
	for _, w := range words {
		if g, err := grantOf(w); err == nil {
			list = append(list, g)
		}
	}
	return list
}

// grantOf parses a capability. To who does not operate a path of it may be told by
// another name, which begins with no slash.
func grantOf(word string) (caps.Grant, error) {
	g, err := caps.ParseGrant(word)
	if parts := strings.SplitN(word, ":", 3); err != nil && len(parts) == 3 {
		if g, err = caps.ParseGrant(parts[0] + ":" + parts[1] + ":/x"); err == nil {
			g.Scope = parts[2]
		}
	}
	return g, err
}

// Holder is the most specific of the grants that covers what a record says was done;
// "" where the record does not say enough.
func Holder(grants []caps.Grant, capability, target string) string {
	best, name := -1, ""
	for _, g := range grants {
		m, ok := modeOf(g.Family, capability, target)
		if !ok || !g.Modes.Has(m) || !covers(g, target) {
			continue
		}
		if len(g.Scope) > best {
			g.Modes = caps.Modes(m)
			best, name = len(g.Scope), g.String()
		}
	}
	return name
}

// modeOf finds how a capability of the log asks for a family.
func modeOf(f caps.Family, capability, target string) (caps.Mode, bool) {
	if capability == caps.ConnectName {
		return connectMode(target), f == caps.Net
	}
	for m := range caps.Mode(64) {
		if caps.AllModes(f).Has(m) && caps.AuditName(f, m) == capability {
			return m, true
		}
	}
	return 0, false
}

// connectMode is what a connection of a program asks for, by its scheme.
func connectMode(target string) caps.Mode {
	scheme, _, _ := strings.Cut(target, "://")
	if m, ok := caps.NetMode(scheme, "GET"); ok {
		return m
	}
	return caps.Bytes
}

func covers(g caps.Grant, target string) bool {
	switch {
	case g.Scope == "*" || g.Scope == "/" || g.Scope == target:
		return true
	case g.Family == caps.FS:
		return strings.HasPrefix(target, g.Scope+"/")
	case g.Family == caps.Net:
		_, rest, _ := strings.Cut(target, "://")
		host, _, _ := strings.Cut(rest, "/")
		scope := strings.TrimSuffix(strings.TrimSuffix(g.Scope, ":443"), ":80")
		return host == g.Scope || host == scope || strings.HasPrefix(scope, "*.") && strings.HasSuffix(host, scope[1:])
	}
	name, _, _ := strings.Cut(target, "/")
	return name == g.Scope
}
