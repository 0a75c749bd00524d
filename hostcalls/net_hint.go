package hostcalls

import (
	"fmt"
	"strings"

	"runloop.dev/rlp/caps"
)

// netLine is the line of a policy that would grant r, a request of Net, and
// every other method beside its own.
func netLine(r caps.Request) string {
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
