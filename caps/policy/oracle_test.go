package policy_test

import (
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"runloop.dev/rlp/caps"
)

// The oracle decides a request from documents as plain maps, by walking their
// strings. It shares nothing with the reader and the algebra but the numbers
// of families and modes, and knows schema 0.2 without placeholders.

type doc = map[string]any

// An ask is a request in the words of a policy.
type ask struct {
	family caps.Family
	verb   string // read, write, delete; get, use
	name   string // of Net: host:port
	scheme string
	method string
}

func (a ask) request() caps.Request {
	r := caps.Request{Family: a.family, Name: a.name}
	switch {
	case a.scheme == "tcp":
		r.Mode = caps.Bytes
	case a.family == caps.Net:
		r.Mode, _ = caps.NetMode(a.scheme, a.method)
	case a.verb == "write":
		r.Mode = caps.Write
	case a.verb == "delete":
		r.Mode = caps.Delete
	case a.verb == "use":
		r.Mode = caps.Use
	}
	return r
}

func strs(v any) []string {
	items, _ := v.([]any)
	var out []string
	for _, i := range items {
		if s, ok := i.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func section(d doc, name string) doc {
	s, _ := d[name].(doc)
	return s
}

func oracleBase(d doc, a ask) bool {
	c := section(d, "capabilities")
	switch a.family {
	case caps.FS:
		in := underAny(strs(c["fs_rw"]), a.name)
		return in || a.verb == "read" && (underAny(strs(c["fs"]), a.name) || underAny(strs(c["fs_ro"]), a.name))
	case caps.Net:
		t, isTable := c["net"].(doc)
		if !isTable {
			t = doc{"hosts": c["net"]}
		}
		if a.scheme == "tcp" {
			return hostIn(strs(t["tcp"]), a)
		}
		if a.scheme == "http" && t["allow_http"] != true {
			return false
		}
		return hostIn(strs(t["hosts"]), a) && methodIn(t, a)
	case caps.Time:
		return c["time"] == true
	case caps.Secrets:
		return secretIn(c["secrets"], a)
	default:
		return nameIn(c[a.family.String()], a)
	}
}

// oracleLayer says whether a layer leaves a request.
func oracleLayer(d doc, a ask) bool {
	for _, s := range strs(section(d, "deny")["capabilities"]) {
		if oracleDenies(s, a) {
			return false
		}
	}
	c := section(d, "capabilities")
	switch a.family {
	case caps.FS:
		return oracleLayerFS(c, a)
	case caps.Net:
		v, there := c["net"]
		t, isTable := v.(doc)
		if !there {
			return true
		}
		if !isTable {
			return hostIn(strs(v), a)
		}
		places, says := t["tcp"]
		if says && (a.scheme == "tcp" || len(t) == 1) {
			return a.scheme != "tcp" || hostIn(strs(places), a)
		}
		if a.scheme == "tcp" && t["methods"] != nil {
			return false
		}
		if a.scheme == "http" && t["allow_http"] == false {
			return false
		}
		_, named := t["hosts"]
		return (!named || hostIn(strs(t["hosts"]), a)) && methodIn(t, a)
	case caps.Time:
		return c["time"] != false
	case caps.Secrets:
		v, there := c["secrets"]
		return !there || secretIn(v, a)
	default:
		v, there := c[a.family.String()]
		return !there || nameIn(v, a)
	}
}

func oracleLayerFS(c doc, a ask) bool {
	_, fs := c["fs"]
	_, ro := c["fs_ro"]
	_, rw := c["fs_rw"]
	reading := underAny(strs(c["fs"]), a.name) || underAny(strs(c["fs_ro"]), a.name)
	writing := underAny(strs(c["fs_rw"]), a.name)
	switch {
	case (fs || ro) && rw:
		return writing || a.verb == "read" && reading
	case fs || ro:
		return reading
	case rw:
		return a.verb == "read" || writing
	}
	return true
}

// oraclePath cleans by its text.
func oraclePath(s string) string {
	if rest, home := strings.CutPrefix(s, "~"); home {
		s = "/home/op" + rest
	}
	var parts []string
	for _, p := range strings.Split(s, "/") {
		switch {
		case p == "..":
			parts = parts[:max(0, len(parts)-1)]
		case p != "" && p != ".":
			parts = append(parts, p)
		}
	}
	return "/" + strings.Join(parts, "/")
}

func underAny(list []string, p string) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		s = strings.TrimRight(oraclePath(s), "/")
		return p == s || strings.HasPrefix(p, s+"/")
	})
}

func hostIn(list []string, a ask) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		host, port, has := strings.Cut(strings.ToLower(s), ":")
		if !has && a.scheme == "tcp" { // a host without a port is that of both schemes
			return hostIn([]string{s + ":443", s + ":80"}, a)
		}
		if !has {
			port = map[string]string{"https": "443", "http": "80"}[a.scheme]
		}
		labels := strings.Split(strings.TrimSuffix(host, "."), ".")
		for i, l := range labels {
			if ascii, err := idna.Punycode.ToASCII(l); err == nil {
				labels[i] = ascii
			}
		}
		s = strings.Join(labels, ".") + ":" + port
		if rest, wild := strings.CutPrefix(s, "*"); wild {
			label, below := strings.CutSuffix(a.name, rest)
			return below && !strings.Contains(label, ".")
		}
		return s == a.name
	})
}

func methodIn(t doc, a ask) bool {
	m, there := t["methods"]
	return !there || slices.Contains(strs(m), a.method)
}

func secretIn(v any, a ask) bool {
	items, _ := v.([]any)
	id, host, _ := strings.Cut(a.name, "@")
	return slices.ContainsFunc(items, func(i any) bool {
		if t, ok := i.(doc); ok {
			return t["id"] == id && (a.verb == "get" || hostIn(strs(t["hosts"]), ask{scheme: "https", name: host}))
		}
		return i == id
	})
}

// nameIn reads bool-or-list values: true is everything but raw bits.
func nameIn(v any, a ask) bool {
	if b, isBool := v.(bool); isBool {
		return b && !strings.HasSuffix(a.name, "_raw")
	}
	return slices.ContainsFunc(strs(v), func(s string) bool {
		rest, wild := strings.CutSuffix(s, "*")
		return s == a.name || wild && strings.HasPrefix(a.name, rest)
	})
}

var denyWords = map[string]caps.Family{
	"fs": caps.FS, "exec": caps.Exec, "process": caps.Exec, "model": caps.Model, "env": caps.Env, "mcp": caps.MCP,
	"agents": caps.Agents,
}

// oracleDenies knows the spellings that the generator writes.
func oracleDenies(s string, a ask) bool {
	p := strings.SplitN(s, ":", 3)
	if p[0] == "net" {
		return a.family == caps.Net && hostIn([]string{strings.TrimPrefix(s, "net:")}, a)
	}
	if p[0] == "network" {
		return a.family == caps.Net && oracleDeniesNet(p[1], p[2], a)
	}
	switch p[0] {
	case "kb":
		f := map[string]caps.Family{"read": caps.KBRead, "write": caps.KBWrite}[p[1]]
		return a.family == f && (p[2] == "*" || p[2] == a.name)
	case "secrets":
		id, host, _ := strings.Cut(a.name, "@")
		denied, at, bound := strings.Cut(p[2], "@")
		return a.family == caps.Secrets && (p[2] == "*" || denied == id && (!bound || a.verb == "use" &&
			hostIn([]string{at}, ask{scheme: "https", name: host})))
	case "fs":
		return a.family == caps.FS && (p[1] == "*" || p[1] == a.verb) && (p[2] == "*" || underAny(p[2:], a.name))
	}
	f, known := denyWords[p[0]]
	return known && a.family == f && (p[2] == "*" || p[2] == a.name)
}

// oracleDeniesNet knows "https:[method@]host", "read:host" and "write:host".
func oracleDeniesNet(action, scope string, a ask) bool {
	method, host, both := strings.Cut(scope, "@")
	if !both {
		host = scope
	}
	reading := a.method == "GET" || a.method == "HEAD"
	if a.scheme == "tcp" {
		return (action == "tcp" || action == "read" || action == "write" || action == "*") && hostIn([]string{host}, a)
	}
	switch action {
	case "read":
		return reading && hostIn([]string{host}, a)
	case "write":
		return !reading && hostIn([]string{host}, a)
	}
	return action == a.scheme && (!both || strings.ToUpper(method) == a.method) && hostIn([]string{host}, a)
}
