package policy

import (
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// BuiltinDomains are the domains of the knowledge base that are always there.
// The registry is closed: a name that is in neither this list nor
// [Options.Domains] is an error.
func BuiltinDomains() []string {
	return caps.BuiltinDomains()
}

// KnownDomain refuses a grant in a domain that is none of domains.
func KnownDomain(g caps.Grant, domains []string) error {
	name := strings.TrimSuffix(g.Scope, rawSuffix)
	if g.Family != caps.KBRead && g.Family != caps.KBWrite || name == "*" || slices.Contains(domains, name) {
		return nil
	}
	return fmt.Errorf("there is no domain %q; the domains are %s", name, strings.Join(domains, ", "))
}

const rawSuffix = "_raw"

func (w *words) domains() []string {
	all := append(BuiltinDomains(), w.opt.Domains...)
	slices.Sort(all)
	return slices.Compact(all)
}

// readDomains reads kb_read and kb_write. true is every domain, written out
// here, so that the two spellings are one; it is never a raw bit.
func readDomains(r *reader, k key, v *tomlfile.Value) {
	if v.Kind == tomlfile.Bool {
		r.allDomains(k, v)
		return
	}
	r.bound(k.family, 1, v)
	var named []string
	r.strings(k.name, v, func(item *tomlfile.Value) {
		if !r.domain(k.family, k.name, item.Pos, item.Str) {
			return
		}
		named = append(named, item.Str)
		r.grant(item, item.Str, caps.Grant{Family: k.family, Modes: 1, Scope: item.Str})
	})
	for _, n := range named {
		if plain := strings.TrimSuffix(n, rawSuffix); !slices.Contains(named, plain) {
			r.add(v.Pos, CodeRawAlone, "add "+plain, "%s lifts the masking of %s and gives nothing without it", n, plain)
		}
	}
}

func (r *reader) allDomains(k key, v *tomlfile.Value) {
	if v.Bool && k.family == caps.KBWrite && !r.layer {
		r.add(v.Pos, CodeKBWriteAll, "list the domains", "kb_write = true is discouraged outside trusted agents")
	}
	r.bound(k.family, 1, v)
	if !v.Bool {
		return
	}
	if r.layer { // told where the base has no domain at all
		r.allow = append(r.allow, caps.Entry{Grant: caps.Grant{Family: k.family, Modes: 1, Scope: "*"}, Pos: place(v.Pos)})
		return
	}
	for _, d := range r.domains() {
		r.allow = append(r.allow, caps.Entry{
			Grant: caps.Grant{Family: k.family, Modes: 1, Scope: d}, Pos: place(v.Pos), Implied: true,
		})
	}
}

// domain reports whether s is a domain that the family has.
func (w *words) domain(f caps.Family, what string, pos tomlfile.Pos, s string) bool {
	plain, raw := strings.CutSuffix(s, rawSuffix)
	known := w.domains()
	switch {
	case raw && f != caps.KBRead && slices.Contains(known, plain):
		w.add(pos, CodeBadDomain, "write "+plain, "%s: %q lifts masking when reading; there is nothing to write to it", what,
			s)
		return false
	case !slices.Contains(known, plain):
		hint := tomlfile.Nearest(plain, known)
		if !strings.HasPrefix(hint, "one of") {
			hint += "; domains are " + strings.Join(known, ", ")
		}
		w.add(pos, CodeBadDomain, hint, "%s: there is no domain %q", what, s)
		return false
	}
	return true
}

// readSecrets reads ids, and {id, hosts}, which lets the value go to these hosts
// alone.
func readSecrets(r *reader, k key, v *tomlfile.Value) {
	r.bound(caps.Secrets, caps.AllModes(caps.Secrets), v)
	for i := range v.Items {
		item := &v.Items[i]
		switch item.Kind {
		case tomlfile.String:
			if r.secretID(item) {
				r.grant(item, item.Str, caps.Grant{Family: caps.Secrets, Modes: caps.AllModes(caps.Secrets), Scope: item.Str})
			}
		case tomlfile.TableKind:
			r.secretTable(item)
		default:
			r.add(item.Pos, CodeWrongType, "", "%s must hold strings or tables, not %s", k.name, item.Kind)
		}
	}
}

func (r *reader) secretTable(v *tomlfile.Value) {
	if !r.needs02(v.Pos, "a secret with hosts") {
		return
	}
	r.known(v.Table, "a secret", []string{"id", "hosts"})
	id, hasID := v.Table.Get("id")
	hosts, hasHosts := v.Table.Get("hosts")
	if !hasID || !hasHosts {
		r.add(v.Pos, CodeMissing, `{ id = "runloop/mail/key", hosts = ["api.example.com"] }`,
			"a secret is an id with hosts, or a string")
		return
	}
	if !r.is(&id.Value, "id", tomlfile.String) || !r.secretID(&id.Value) || !r.is(&hosts.Value, "hosts", tomlfile.Array) {
		return
	}
	gs := []caps.Grant{{Family: caps.Secrets, Modes: caps.Modes(caps.Get), Scope: id.Value.Str}}
	r.strings("hosts", &hosts.Value, func(item *tomlfile.Value) {
		if scope, _, ok := r.host(item); ok {
			gs = append(gs, caps.Grant{Family: caps.Secrets, Modes: caps.Modes(caps.Use), Scope: id.Value.Str + "@" + scope})
		}
	})
	r.grant(v, "", gs...)
}

func (w *words) secretID(item *tomlfile.Value) bool {
	w.hidden(item)
	if _, err := caps.SecretID(item.Str); err != nil {
		w.add(item.Pos, CodeBadSecretID, secretHint(item.Str), "%v", err)
		return false
	}
	return true
}

// secretHint is the id that somebody who wrote s should write: what stands
// before the first separator is the scope, the rest the name.
func secretHint(s string) string {
	parts := strings.FieldsFunc(strings.ToLower(s), func(c rune) bool {
		return !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-')
	})
	if len(parts) > 0 && parts[0] == "runloop" {
		parts = parts[1:]
	}
	switch len(parts) {
	case 0:
		return `such as "runloop/mail/smtp_key"`
	case 1:
		return `write "runloop/default/` + parts[0] + `"`
	}
	return `write "runloop/` + parts[0] + "/" + strings.Join(parts[1:], "_") + `"`
}

// name judges one name of model, exec, env, mcp or agents.
func (w *words) name(k key, item *tomlfile.Value) (string, bool) {
	s := item.Str
	w.hidden(item)
	switch {
	case k.family == caps.Exec:
		return w.program(item)
	case k.family == caps.Model && isModelPattern(s):
		if s == "*" && !w.layer {
			w.add(item.Pos, CodeWildcardScope, `name providers: "openai:*"`, "model %q is every model", s)
		}
		return s, true
	case caps.IsName(k.family, s):
		return s, true
	}
	hint := map[caps.Family]string{
		caps.Model: `"provider:name", "provider:*"`, caps.Env: `such as "PATH"`,
		caps.MCP: "the name of a server in config.toml", caps.Agents: "lower-case letters, digits, - and _",
	}[k.family]
	w.add(item.Pos, CodeBadName, hint, "%q is no name for %s", s, k.name)
	return "", false
}

// isModelPattern asks the algebra itself: a scope is what its own words read as.
func isModelPattern(s string) bool {
	g, err := caps.ParseGrant("model:use:" + s)
	return err == nil && g.Scope == s
}

func (w *words) program(item *tomlfile.Value) (string, bool) {
	path, dotdot, err := caps.CleanPath(item.Str)
	switch {
	case err != nil:
		w.add(item.Pos, CodeBadProgram, `such as "/usr/bin/grep"`, "exec: %v", err)
	case path == "/":
		w.add(item.Pos, CodeBadProgram, `such as "/usr/bin/grep"`, "exec: %q is no program", item.Str)
	case dotdot:
		w.add(item.Pos, CodePathDotDot, "write "+path, "%q has .. in it and is read as %s", item.Str, path)
		return path, true
	default:
		return path, true
	}
	return "", false
}
