package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

func setServers(w *tomlfile.Walk, name string, v *tomlfile.Value, c *Config) {
	c.MCP = map[string]MCPServer{}
	eachEntry(w, name, v, mcpName, func(e *tomlfile.Entry) {
		if w.Is(&e.Value, "["+name+"."+e.Key+"]", tomlfile.TableKind) {
			c.MCP[e.Key] = server(w, e.Value.Table)
		}
	})
}

// mcpName is the check of a server's name: it is also the name of a file.
func mcpName(s string) string {
	switch {
	case serverName(s) != "":
		return serverName(s)
	case s == "tools":
		return "is what a bundle's own tools are called by; give the server another name"
	case s[0] == '.':
		return "must not begin with a dot"
	}
	return ""
}

func server(w *tomlfile.Walk, t *tomlfile.Table) MCPServer {
	w.Known(t, "command", "url", "env", "secrets")
	var s MCPServer
	command, hasCommand := t.Get("command")
	_, hasURL := t.Get("url")
	if hasCommand == hasURL {
		w.Errorf(t.Pos, "", "a server has either a command or a url")
	}
	if hasCommand {
		s.Command = stringList(w, "command", &command.Value, notEmpty)
		if len(s.Command) == 0 || absolute(s.Command[0]) != "" {
			w.Errorf(command.Value.Pos, `["/usr/bin/server", "--flag"]`, "command %s", absolute(""))
		}
	}
	s.URL = checked(w, t, "url", ServerAddress)
	if e, ok := t.Get("env"); ok {
		if hasURL {
			w.Errorf(e.Pos, "", "a server at a url has no env; its bearer token is secrets = [\"runloop/<scope>/<name>\"]")
		}
		s.Env = stringList(w, "env", &e.Value, variableName)
	}
	if e, ok := t.Get("secrets"); ok {
		s.Secrets = serverSecrets(w, &e.Value, hasURL)
	}
	for i, v := range s.Secrets {
		again := slices.ContainsFunc(s.Secrets[:i], func(o MCPSecret) bool { return o.Variable == v.Variable })
		if again || slices.Contains(s.Env, v.Variable) {
			w.Errorf(t.Pos, `secrets = { NAME = "runloop/<scope>/<name>" }`, "two values for the variable %s", v.Variable)
		}
	}
	return s
}

// ServerAddress is the check of a server's URL: nothing but what stays on this
// machine goes over it in clear.
func ServerAddress(s string) string {
	if msg := webAddress(s); msg != "" {
		return msg
	}
	u, err := url.Parse(s)
	if err != nil {
		return "must be an http or https URL"
	}
	host := u.Host
	if u.Port() == "" {
		host += ":443" // any will do
	}
	if !caps.IsHostPort(host) {
		return "must have its host as it is resolved: lower-case, in ASCII, without a dot at its end"
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return "must be https, since it does not lead to this machine itself"
	}
	return ""
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// serverSecrets are names of variables with ids of secrets, or ids alone: then
// the variable of runloop/<scope>/<name> is SCOPE_NAME.
func serverSecrets(w *tomlfile.Walk, v *tomlfile.Value, isURL bool) []MCPSecret {
	if v.Kind == tomlfile.TableKind && !isURL {
		return namedSecrets(w, v.Table)
	}
	var list []MCPSecret
	for _, id := range stringList(w, "secrets", v, neededSecret) {
		list = append(list, MCPSecret{SecretVariable(id), id})
	}
	if !isURL {
		return list
	}
	if len(list) > 1 {
		w.Errorf(v.Pos, "", "a server at a url has one secret, its bearer token")
	}
	for i := range list {
		list[i].Variable = ""
	}
	return list
}

func namedSecrets(w *tomlfile.Walk, t *tomlfile.Table) []MCPSecret {
	var list []MCPSecret
	for i := range t.Entries {
		e := &t.Entries[i]
		if msg := variableName(e.Key); msg != "" {
			w.Errorf(e.Pos, "", "%q in secrets %s", e.Key, msg)
			continue
		}
		if !w.Is(&e.Value, "secrets."+e.Key, tomlfile.String) {
			continue
		}
		if msg := neededSecret(e.Value.Str); msg != "" {
			w.Errorf(e.Value.Pos, "", "secrets.%s %s, not %q", e.Key, msg, e.Value.Str)
			continue
		}
		list = append(list, MCPSecret{e.Key, e.Value.Str})
	}
	return list
}

func neededSecret(id string) string {
	if id == "" {
		return "must not be empty"
	}
	return secretID(id)
}

// SecretVariable is the variable by which a server finds the secret id where the
// operator gives it no other: runloop/github/token is GITHUB_TOKEN.
func SecretVariable(id string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, strings.TrimPrefix(id, "runloop/"))
}
