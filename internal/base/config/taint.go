package config

import (
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// untrustedSource is the check of an input that marks a run. A word that is
// none would mark nothing, and nobody would miss it.
func untrustedSource(s string) string {
	if _, err := caps.ParseSource(s); err != nil {
		return "must be fs:/absolute/path, exec:/absolute/program, exec:*, kb:domain, kb:* or input"
	}
	return ""
}

// trustedHost is the check of a host whose answers mark no run.
func trustedHost(s string) string {
	if _, err := caps.ParseTrustedHost(s); err != nil {
		return `must be a host such as "api.example.com:8443" or "*.example.org", or "http://10.1.2.3:8080" to believe it over plain http`
	}
	return ""
}

// knownDomains refuses a source of a domain that there is not: it would mark no
// run, ever.
func knownDomains(w *tomlfile.Walk, root *tomlfile.Table, c *Config) {
	domains := append(policy.BuiltinDomains(), c.KB.Domains...)
	for _, text := range c.Security.Caps.Untrusted {
		s, err := caps.ParseSource(text)
		if err != nil || s.Grant.Family != caps.KBRead || s.Grant.Modes == 0 || s.Grant.Scope == "*" ||
			slices.Contains(domains, s.Grant.Scope) {
			continue
		}
		w.Errorf(placeOf(root, "security.caps.untrusted"), tomlfile.Nearest(s.Grant.Scope, domains),
			"security.caps.untrusted: %s: there is no domain %q; there are %s, and those of [kb] domains", text, s.Grant.Scope,
			strings.Join(domains, ", "))
	}
}
