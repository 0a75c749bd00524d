package hostcalls

import (
	"testing"

	"runloop.dev/rlp/caps"
)

// A refusal says what a policy would have to say over http too.
func TestMethodLines(t *testing.T) {
	for _, c := range []struct{ scheme, method, host, want string }{
		{"https", "POST", "a.example:443", `net = { hosts = ["a.example"], methods = ["POST"] }`},
		{"http", "PUT", "a.example:80", `net = { hosts = ["a.example"], allow_http = true, methods = ["PUT"] }`},
		{"http", "GET", "a.example:8080", `net = { hosts = ["a.example:8080"], allow_http = true, methods = ["GET"] }`},
		{"https", "PURGE", "a.example:443", `net = ["a.example"]`},
	} {
		mode, ok := caps.NetMode(c.scheme, c.method)
		if got := methodLine(caps.Request{Family: caps.Net, Mode: mode, Name: c.host}); !ok || got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
