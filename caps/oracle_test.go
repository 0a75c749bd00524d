package caps_test

import (
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"

	"runloop.dev/rlp/caps"
)

// The oracle decides by walking the entries of the base and of every layer as
// strings. It shares nothing with the bitsets but the types of what it reads.
type oracle struct {
	base   []caps.Entry
	layers []*caps.Layer
}

func (o oracle) allows(r caps.Request) bool { return o.refuser(r) == -1 }

// refuser is the first layer that refuses, 0 for the base, -1 for none; -2 for
// what is no request.
func (o oracle) refuser(r caps.Request) int {
	if !wellFormed(r) {
		return -2
	}
	granted := r.Family == caps.Tool // of which every base has all
	for _, e := range o.base {
		granted = granted || gives(e.Grant, r)
	}
	if !granted {
		return 0
	}
	for i, l := range o.layers {
		if !layerAllows(l, r) {
			return i + 1
		}
	}
	return -1
}

func layerAllows(l *caps.Layer, r caps.Request) bool {
	bound, allowed := false, false
	for _, b := range l.Bounds {
		bound = bound || b.Family == r.Family && b.Modes&(1<<r.Mode) != 0
	}
	for _, e := range l.Allow {
		allowed = allowed || gives(e.Grant, r)
	}
	if bound && !allowed {
		return false
	}
	deny, spare := -1, -1
	for _, e := range l.Deny {
		if takes(e.Grant, r) {
			deny = max(deny, depth(e.Grant))
		}
	}
	for _, e := range l.Spare {
		if takes(e.Grant, r) {
			spare = max(spare, depth(e.Grant))
		}
	}
	return deny < 0 || spare > deny
}

// gives: a secret bound to a host gives the handle, and "*" gives no raw domain.
func gives(g caps.Grant, r caps.Request) bool {
	if g.Family != r.Family || g.Modes&(1<<r.Mode) == 0 {
		return false
	}
	switch {
	case g.Family == caps.Secrets && r.Mode == caps.Get:
		id, _, _ := strings.Cut(g.Scope, "@")
		return id == "*" || id == r.Name
	case g.Family == caps.KBRead && g.Scope == "*":
		return !strings.HasSuffix(r.Name, "_raw")
	}
	return holds(g.Family, g.Scope, r.Name)
}

// takes: a secret bound to a host takes no handle, and "*" takes everything.
func takes(g caps.Grant, r caps.Request) bool {
	return g.Family == r.Family && g.Modes&(1<<r.Mode) != 0 &&
		!(g.Family == caps.Secrets && r.Mode == caps.Get && strings.Contains(g.Scope, "@")) &&
		holds(g.Family, g.Scope, r.Name)
}

func holds(f caps.Family, scope, name string) bool {
	if scope == "*" || scope == name {
		return true
	}
	switch f {
	case caps.FS:
		return scope == "/" || strings.HasPrefix(name, scope+"/")
	case caps.Net:
		return holdsHost(scope, name)
	case caps.Model, caps.Tool:
		return strings.HasSuffix(scope, ":*") && strings.HasPrefix(name, scope[:len(scope)-1])
	case caps.Secrets:
		id, host, bound := strings.Cut(scope, "@")
		nameID, nameHost, _ := strings.Cut(name, "@")
		return id == nameID && (!bound || holdsHost(host, nameHost))
	}
	return false
}

func holdsHost(scope, name string) bool {
	if scope == name {
		return true
	}
	if !strings.HasPrefix(scope, "*.") {
		return false
	}
	_, rest, ok := strings.Cut(name, ".")
	return ok && rest == scope[2:]
}

// depth counts how narrow a scope is among those of its family.
func depth(g caps.Grant) int {
	host := func(h string) int {
		if strings.HasPrefix(h, "*.") {
			return 2
		}
		return 3
	}
	switch {
	case g.Scope == "*" || g.Scope == "/":
		return 0
	case g.Family == caps.FS:
		return strings.Count(g.Scope, "/")
	case g.Family == caps.Net:
		return host(g.Scope)
	case (g.Family == caps.Model || g.Family == caps.Tool) && strings.HasSuffix(g.Scope, ":*"):
		return 1
	case g.Family == caps.Secrets:
		if _, h, bound := strings.Cut(g.Scope, "@"); bound {
			return host(h)
		}
		return 1
	}
	return 3
}

var (
	reDomain = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)
	reSecret = regexp.MustCompile(`^runloop/[A-Za-z0-9_.-]{1,64}/[A-Za-z0-9_.-]{1,64}$`)
	reModel  = regexp.MustCompile(`^[A-Za-z0-9._/@+-][A-Za-z0-9._/@+:-]{0,253}$`)
	reLabel  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	rePort   = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)
)

func wellFormed(r caps.Request) bool {
	n := r.Name
	switch r.Family {
	case caps.FS, caps.Exec:
		return strings.HasPrefix(n, "/") && path.Clean(n) == n && !strings.Contains(n, "\x00") &&
			len(n) <= 4096 && (r.Family == caps.FS || n != "/")
	case caps.Net:
		return wellFormedHost(n)
	case caps.Time:
		return n == "*" || n == ""
	case caps.KBRead, caps.Agents:
		return reDomain.MatchString(n)
	case caps.KBWrite:
		return reDomain.MatchString(n) && !strings.HasSuffix(n, "_raw")
	case caps.Secrets:
		id, host, bound := strings.Cut(n, "@")
		if !reSecret.MatchString(id) || path.Clean(id) != id {
			return false
		}
		return !bound || r.Mode == caps.Use && wellFormedHost(host)
	case caps.Model:
		return reModel.MatchString(n) && !strings.HasSuffix(n, ":")
	case caps.Env:
		return n != "" && len(n) < 256 && !strings.ContainsFunc(n, func(c rune) bool {
			return c <= ' ' || c > '~' ||
				c == '=' || c == '*'
		})
	case caps.Tool:
		return regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}:[A-Za-z0-9_./-]{1,200}$`).MatchString(n)
	case caps.MCP:
		return regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`).MatchString(n)
	}
	return false
}

func wellFormedHost(n string) bool {
	i := strings.LastIndex(n, ":")
	if i < 0 || !rePort.MatchString(n[i+1:]) {
		return false
	}
	if p, _ := strconv.Atoi(n[i+1:]); p > 65535 {
		return false
	}
	host := n[:i]
	if strings.HasPrefix(host, "[") {
		ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
		return err == nil && ip.Is6() && !ip.Is4In6() && ip.Zone() == "" && "["+ip.String()+"]" == host
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if !reLabel.MatchString(l) {
			return false
		}
	}
	last := labels[len(labels)-1]
	if _, err := strconv.ParseUint(last, 10, 64); err == nil || strings.HasPrefix(last, "0x") {
		ip, err := netip.ParseAddr(host)
		return err == nil && ip.Is4()
	}
	return len(host) <= 253
}
