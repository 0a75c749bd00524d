package lint

import (
	"fmt"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// routes warns of routes that the base itself keeps closed, of those whose secret may
// go elsewhere as well, and of those that their own first answer closes.
func routes(list []caps.Route, base caps.Set, trusted []string) []policy.Finding {
	var findings []policy.Finding
	for i := range list {
		r := &list[i]
		say := func(code policy.Code, hint, format string, args ...any) {
			findings = append(findings, policy.Finding{
				Path: r.Pos.File, Line: r.Pos.Line, Column: r.Pos.Column, Severity: code.Severity(), Code: code,
				Message: fmt.Sprintf(format, args...), Hint: hint,
			})
		}
		bound := fmt.Sprintf("secrets = [{ id = %q, hosts = [%q] }]", r.Secret, r.Host)
		open := true
		for m := range caps.Mode(32) {
			if !r.Methods.Has(m) || base.Route(r, m).Allow {
				continue
			}
			if missing := r.Requests(m)[0]; !base.Check(missing).Allow {
				say(policy.CodeRouteClosed, fmt.Sprintf("net = [%q]", r.Host), "the route is closed: no grant has %s", missing)
			} else {
				say(policy.CodeRouteClosed, bound, "the route is closed: secrets does not let %s go to %s", r.Secret, r.Host)
			}
			open = false
			break
		}
		if open && !trusts(trusted, r) {
			say(policy.CodeRouteUntrusted, fmt.Sprintf("[security.caps] trusted_hosts = [%q] in config.toml", r.Host),
				"the first answer of %s marks the run, and the floor then closes the route", r.Host)
		}
		if base.Check(caps.Request{Family: caps.Secrets, Mode: caps.Use, Name: r.Secret}).Allow {
			say(policy.CodeRouteUnbound, bound, "the secret %s of the route may go to every host and program that is granted",
				r.Secret)
		}
	}
	return findings
}

// trusts reports whether answers on the route mark no run.
func trusts(trusted []string, r *caps.Route) bool {
	return slices.ContainsFunc(trusted, func(text string) bool {
		g, err := caps.ParseTrustedHost(text) // the settings were read, or there would be no launch
		return err == nil && g.Modes&r.Methods == r.Methods && caps.BoundTo(g.Scope, r.Host+":443")
	})
}
