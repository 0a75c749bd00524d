package lint

import (
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// routes warns of routes that the base itself keeps closed, and of those whose
// secret may go elsewhere as well.
func routes(list []caps.Route, base caps.Set) []policy.Finding {
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
		for m := range caps.Mode(32) {
			if !r.Methods.Has(m) || base.Route(r, m).Allow {
				continue
			}
			if missing := r.Requests(m)[0]; !base.Check(missing).Allow {
				say(policy.CodeRouteClosed, fmt.Sprintf("net = [%q]", r.Host), "the route is closed: no grant has %s", missing)
			} else {
				say(policy.CodeRouteClosed, bound, "the route is closed: secrets does not let %s go to %s", r.Secret, r.Host)
			}
			break
		}
		if base.Check(caps.Request{Family: caps.Secrets, Mode: caps.Use, Name: r.Secret}).Allow {
			say(policy.CodeRouteUnbound, bound, "the secret %s of the route may go to every host and program that is granted",
				r.Secret)
		}
	}
	return findings
}
