package lint

import (
	"fmt"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// trustedElsewhere warns of grants whose host security.caps.trusted_hosts names, by
// a scheme or port by which the grant does not reach it: the operator trusts the
// host, and its answers mark the run all the same.
func trustedElsewhere(base []caps.Entry, trusted []string) []policy.Finding {
	var findings []policy.Finding
	for _, e := range base {
		g, named := e.Grant, ""
		if g.Family != caps.Net || g.Scope == "*" {
			continue
		}
		var by caps.ModeSet // the trusted part of the grant
		for _, text := range trusted {
			t, err := caps.ParseTrustedHost(text)
			if err != nil || !hostsMeet(g.Scope, t.Scope) {
				continue // one that cannot be read was refused with config.toml
			}
			named = text
			if port(g.Scope) == port(t.Scope) {
				by |= t.Modes & g.Modes
			}
		}
		plain := g.Modes &^ overTLS()
		if named == "" || by != 0 && by&plain == plain {
			continue
		}
		write, over := strings.TrimSuffix(g.Scope, ":443"), "https"
		if plain != 0 {
			write, over = "http://"+g.Scope, "plain http"
		}
		findings = append(findings, policy.Finding{
			Path: e.Pos.File, Line: e.Pos.Line, Column: e.Pos.Column,
			Severity: policy.CodeTrustedElsewhere.Severity(), Code: policy.CodeTrustedElsewhere,
			Message: fmt.Sprintf("security.caps.trusted_hosts names %q, which this grant does not reach over %s at port %s: "+
				"such answers mark the run as untrusted", named, over, port(g.Scope)),
			Hint: fmt.Sprintf("to trust them, write %q there", write),
		})
	}
	return findings
}

// overTLS are the modes of requests over https.
func overTLS() caps.ModeSet {
	g, _ := caps.ParseTrustedHost("host.example") // a host without a scheme is https
	return g.Modes
}

func port(scope string) string { return scope[strings.LastIndexByte(scope, ':')+1:] }

// hostsMeet reports whether there is a host that both scopes name, whatever the port.
func hostsMeet(a, b string) bool {
	a, b = strings.TrimSuffix(a, ":"+port(a)), strings.TrimSuffix(b, ":"+port(b))
	return a == b || hostOf(a, b) || hostOf(b, a)
}

// hostOf reports whether a pattern such as "*.example.org" names a host: one label
// takes the place of the star.
func hostOf(pattern, host string) bool {
	suffix, wild := strings.CutPrefix(pattern, "*")
	_, rest, _ := strings.Cut(host, ".")
	return wild && "."+rest == suffix
}
