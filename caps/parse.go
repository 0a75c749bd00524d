package caps

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// kind is what a capability string is read as.
type kind uint8

const (
	grant kind = iota
	deny
	request
)

// ParseGrant reads a capability string, "domain:action:scope", split at its
// first two colons; "net:host" is short for "network:https:host". The scope
// comes back canonical. What is malformed is an error that says what to write,
// never a part of what was meant.
func ParseGrant(s string) (Grant, error) {
	list, err := parse(s, grant)
	if err != nil {
		return Grant{}, err
	}
	return list[0], nil
}

// ParseDeny reads a capability string of a deny list. There "*" may stand for
// the action, for the domain, or both, "exec" and "net" are words for process
// and network, and a host without a scheme means both schemes. What it stands
// for can be several grants.
func ParseDeny(s string) ([]Grant, error) { return parse(s, deny) }

// ParseRequest reads a capability string as what is asked for: the requests
// that it stands for, which all have to be allowed. A URL may have a path, and
// "fs:read:*" asks for "/" itself; [Set.Covers] asks for everything within.
func ParseRequest(s string) ([]Request, error) {
	list, err := parse(s, request)
	if err != nil {
		return nil, err
	}
	var out []Request
	for _, g := range list {
		out = append(out, g.requests()...)
	}
	return out, nil
}

func (g Grant) requests() []Request {
	var out []Request
	for m := range families[g.Family].modes {
		if !g.Modes.Has(m) {
			continue
		}
		name := g.Scope
		if g.Family == Secrets {
			id, _, bound := strings.Cut(name, "@")
			if m == Use && !bound && g.Modes.Has(Get) {
				continue // asking for a handle; putting it in needs a host
			}
			if m == Get {
				name = id
			}
		}
		out = append(out, Request{Family: g.Family, Mode: m, Name: name})
	}
	return out
}

func parse(s string, k kind) ([]Grant, error) {
	wrong := func(err error) ([]Grant, error) { return nil, fmt.Errorf("capability %q: %w", s, err) }
	if !isText(s) {
		return wrong(errors.New("control characters, or not UTF-8"))
	}
	parts := strings.SplitN(s, ":", 3)
	if len(parts) > 1 && parts[0] == "net" && (k != deny || !isNetAction(parts[1])) {
		over := schemes[:]
		if k != deny {
			over = schemes[:1]
		}
		list, err := netGrants(over, 0xff, strings.TrimPrefix(s, "net:"))
		if err != nil {
			return wrong(err)
		}
		if k == deny {
			list = withBytes(list)
		}
		return list, nil
	}
	if len(parts) < 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return wrong(errors.New("write domain:action:scope, such as fs:read:/tmp"))
	}
	if strings.ContainsAny(parts[0]+parts[1], " \u00a0") || parts[2] != strings.TrimSpace(parts[2]) {
		return wrong(errors.New("blanks: leave them out"))
	}
	list, err := parseParts(parts[0], parts[1], parts[2], k)
	if err != nil {
		return wrong(err)
	}
	return list, nil
}

func isNetAction(s string) bool {
	switch s {
	case "https", "http", "tcp", "read", "write", "*":
		return true
	}
	return false
}

// parseParts reads the three parts against every family that the domain names:
// kb names two, told apart by the action, and "*" names all in a deny list.
func parseParts(domain, action, scope string, k kind) ([]Grant, error) {
	var out []Grant
	var words []string
	known := false
	for f := range numUniverses {
		row := &families[f]
		if domain != row.domain && (k != deny || domain != row.alias && (domain != "*" || f == Tool)) {
			continue
		}
		known = true
		if f == Net {
			list, err := parseNet(action, scope, k)
			if err != nil {
				return nil, err
			}
			out = append(out, list...)
			continue
		}
		modes := row.modesOf(action, k, &words)
		if modes == 0 {
			continue
		}
		g, err := parseScope(f, scope, k)
		if err != nil {
			return nil, err
		}
		g.Modes = modes
		if f == Tool && k == deny {
			out = append(out, DenyTool(g.Scope)...)
			continue
		}
		if f == MCP && k == deny && g.Scope == attached { // the server as which a bundle's tools are called
			out = append(out, Grant{Tool, 1, attached + ":*"})
		}
		out = append(out, g)
	}
	switch {
	case !known:
		return nil, fmt.Errorf("unknown domain %q: write one of %s", domain, strings.Join(domains(), ", "))
	case len(out) == 0:
		return nil, fmt.Errorf("%s has no action %q: write %s", domain, action, actionsText(words))
	}
	return out, nil
}

// actionsText is the actions of a domain for a message, each once: families
// that share a domain, and modes that imply others, name one more than once.
func actionsText(words []string) string {
	words = slices.Compact(slices.Sorted(slices.Values(words)))
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// modesOf is the modes that action names, 0 when it names none; the words that
// it could have been are added to words.
func (row *family) modesOf(action string, k kind, words *[]string) ModeSet {
	if k == deny && action == "*" {
		return 1<<row.modes - 1
	}
	for _, a := range row.actions {
		if a.word == action {
			return a.modes
		}
		*words = append(*words, a.word)
	}
	return 0
}

func domains() []string {
	var out []string
	for i := range families {
		if d := families[i].domain; len(out) == 0 || out[len(out)-1] != d {
			out = append(out, d)
		}
	}
	return out
}

// parseScope makes the scope canonical.
func parseScope(f Family, scope string, k kind) (Grant, error) {
	if f == Tool {
		scope = oneTool(scope)
	}
	g := Grant{Family: f, Scope: scope}
	if scope == "*" {
		g.Scope = f.root()
		return g, nil
	}
	switch {
	case families[f].shape == pathTree || f == Exec:
		if k == request && isCleanPath(scope) {
			return g, nil // a file's name may have any character
		}
		path, _, err := CleanPath(scope)
		if err != nil {
			return g, err
		}
		g.Scope = path
	case f == Secrets:
		id, host, bound := strings.Cut(scope, "@")
		if bound {
			hp, err := WildcardPort("https", host)
			if err != nil {
				return g, err
			}
			g.Scope = id + "@" + hp
		}
		_, err := SecretID(id)
		return g, err
	}
	if !isScope(f, g.Scope) {
		return g, fmt.Errorf("%q is no scope of %s", scope, f)
	}
	return g, nil
}

// isScope reports whether s is a canonical scope of f: its widest one, a
// pattern, or a name.
func isScope(f Family, s string) bool {
	if s == f.root() || families[f].valid(s) {
		return true
	}
	switch families[f].shape {
	case hostTree:
		return isWildcard(s)
	case modelTree:
		provider, ok := strings.CutSuffix(s, ":*")
		return ok && isPlainName(provider)
	case secretTree:
		id, host, _ := strings.Cut(s, "@")
		return isSecretID(id) && isWildcard(host)
	}
	return false
}

// isWildcard reports whether s is "*.example.org:443".
func isWildcard(s string) bool {
	rest, ok := strings.CutPrefix(s, "*.")
	return ok && isHostPort(rest) && rest[0] != '[' && !isIPv4(rest[:strings.LastIndexByte(rest, ':')])
}
