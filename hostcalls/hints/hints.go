// Package hints says what somebody would have to write so that a request is
// allowed that was not: the lines of a policy, the limits and the layers.
package hints

import (
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// Calls says what is used up where a run may make no more calls, whatever they ask for.
const Calls = "limits.hostcalls_max of this run is used up; the operator raises it under [limits]"

// Of says what would have to change for a call that code refused to be allowed;
// layer is what took it away, "" for none.
func Of(r caps.Request, code caps.Code, layer string) string {
	switch code {
	case caps.Unavailable:
		return "this version of rlp has no " + r.Family.String() + " component"
	case caps.BudgetExhausted, caps.RateLimited:
		return limitHint(r.Family, code)
	case caps.RouteNotPermitted:
		return "no [[inject]] of the bundle's policy.caps takes this request: method, host and path have to be those of one"
	case caps.AddressNotPermitted:
		return addressHint(r)
	case caps.ServerNameMismatch:
		return "what is said on a connection must name the server that it was made to: " + r.Name
	case caps.SecretUnknown:
		return unknownSecretHint(r)
	}
	if code == caps.ToolHidden {
		return hiddenHint(layer)
	}
	line := policyLine(r)
	if code == caps.MethodNotPermitted {
		line = methodLine(r)
	}
	if layer == "" {
		return fmt.Sprintf("policy.caps does not ask for it; it would need %s", line) + domainHint(r)
	}
	return fmt.Sprintf("%s takes it away; it would have to leave %s", layer, line)
}

// netLine is the line of a policy that would grant r, a request of Net, and
// every other method beside its own.
func netLine(r caps.Request) string {
	if caps.TCP.Has(r.Mode) {
		return fmt.Sprintf("net = { tcp = [%q] }", r.Name)
	}
	if host, ok := overHTTPS(r); ok {
		return fmt.Sprintf("net = [%q]", host)
	}
	return fmt.Sprintf("net = { hosts = [%q], allow_http = true }", strings.TrimSuffix(r.Name, ":80"))
}

// methodLine is the line that would grant the method of r.
func methodLine(r caps.Request) string {
	host, secure := overHTTPS(r)
	scheme, http := "https", ""
	if !secure {
		host, scheme, http = strings.TrimSuffix(r.Name, ":80"), "http", ", allow_http = true"
	}
	for _, m := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		if mode, _ := caps.NetMode(scheme, m); mode == r.Mode {
			return fmt.Sprintf("net = { hosts = [%q]%s, methods = [%q] }", host, http, m)
		}
	}
	return netLine(r) // a method without a name is granted by naming none
}

// overHTTPS is the host of r as a policy writes it, if r is over https.
func overHTTPS(r caps.Request) (host string, ok bool) {
	return strings.TrimSuffix(r.Name, ":443"), caps.HTTPS.Has(r.Mode)
}

func netLimitHint(code caps.Code) string {
	if code == caps.RateLimited {
		return "limits.net_requests_per_minute is used up; a redirect counts as a request; wait, or raise it under [limits]"
	}
	return "limits.net_bytes of this run is used up; the operator raises it under [limits]"
}

func addressHint(r caps.Request) string {
	return fmt.Sprintf("%s is, or leads to, an address that is not public: such a one is reached only as the address "+
		"itself, or as localhost, "+
		"by a grant that names it, as %s would; link-local, multicast and metadata addresses never are", r.Name, netLine(r))
}

// hiddenHint says who hides a tool.
func hiddenHint(layer string) string {
	if layer == "" {
		return "there is no such tool for this run"
	}
	return layer + " hides the tool; its [tools] allow, [visible] categories and [deny] tools would have to leave it"
}

// domainHint says where a domain has to be known that no policy can name without that.
func domainHint(r caps.Request) string {
	if r.Family != caps.KBRead && r.Family != caps.KBWrite || slices.Contains(caps.BuiltinDomains(), r.Name) {
		return ""
	}
	return fmt.Sprintf("; %q is no built-in domain, so that [kb] domains of config.toml would have to name it first", r.Name)
}

// limitHint names the limit of family f that is used up.
func limitHint(f caps.Family, code caps.Code) string {
	limit := "a limit"
	switch f {
	case caps.Net:
		return netLimitHint(code)
	case caps.Exec:
		limit = "limits.exec_spawns"
	case caps.KBWrite:
		limit = "limits.kb_write_bytes"
	case caps.Agents:
		if code == caps.RateLimited {
			return "agents that this run launched did not stop when their runs were over; no more are launched beside them"
		}
		limit = "limits.max_depth"
	}
	return limit + " of this run is used up; the operator raises it under [limits]"
}

// policyLine is the line of a policy that would grant r.
func policyLine(r caps.Request) string {
	key := r.Family.String()
	switch {
	case r.Family == caps.Time:
		return "time = true"
	case r.Family == caps.Net:
		return netLine(r)
	case r.Family == caps.Secrets && r.Mode == caps.Use:
		return secretLine(r.Name)
	case r.Family == caps.FS && r.Mode != caps.Read:
		key = "fs_rw"
	}
	return fmt.Sprintf("%s = [%q]", key, r.Name)
}

// unknownSecretHint says what a request for what is not there should have been.
func unknownSecretHint(r caps.Request) string {
	if r.Name == "*" {
		return "what begins with rlsec_ and is no handle of this run is sent nowhere; ask secret_handle for one"
	}
	return "there is no such secret; the operator stores it with rlp secrets put " + r.Name
}

// secretLine is the line of a policy that lets a secret be put in.
func secretLine(name string) string {
	if id, host, bound := strings.Cut(name, "@"); bound {
		return fmt.Sprintf("secrets = [{ id = %q, hosts = [%q] }]", id, host)
	}
	return fmt.Sprintf("secrets = [%q], without hosts, since a program is none", name)
}
