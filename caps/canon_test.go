package caps_test

import (
	"net/netip"
	"path"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// TestCleanPath holds one table of what a policy's path becomes.
//
//rlp:holds R13 R14 R15 P14
func TestCleanPath(t *testing.T) {
	for _, c := range []struct {
		in, want string
		dotdot   bool
		refusal  string
	}{
		{in: "/", want: "/"},
		{in: "/a/b", want: "/a/b"},
		{in: "/a//b/./c/", want: "/a/b/c"},
		{in: "/a/../b", want: "/b", dotdot: true},
		{in: "/../../x", want: "/x", dotdot: true},
		{in: "/My Documents/é", want: "/My Documents/é"},
		{in: "/a/..b/...", want: "/a/..b/..."},
		{in: "", refusal: "empty"},
		{in: "a/b", refusal: "relative"},
		{in: "./a", refusal: "relative"},
		{in: "~/a", refusal: "relative"},
		{in: "/a/*", refusal: "globs not allowed in v0.1"},
		{in: "/a?", refusal: "glob"},
		{in: "/a[b]", refusal: "glob"},
		{in: "/a\x00b", refusal: "control"},
		{in: `/tmp\x`, refusal: "backslash"},
		{in: `/tmp/\`, refusal: "backslash"},
		{in: "/a\nb", refusal: "control"},
		{in: "/a\u0085b", refusal: "control"},
		{in: "/a\xff", refusal: "UTF-8"},
		{in: "/a ", refusal: "blanks at its end"},
		{in: "/a\u00a0/./", refusal: "blanks at its end"},
		{in: "/" + strings.Repeat("a", caps.MaxPath), refusal: "at most"},
	} {
		got, dotdot, err := caps.CleanPath(c.in)
		switch {
		case c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)):
			t.Errorf("CleanPath(%q) = %q, %v; want an error about %q", c.in, got, err, c.refusal)
		case c.refusal == "" && (err != nil || got != c.want || dotdot != c.dotdot):
			t.Errorf("CleanPath(%q) = %q, %v, %v; want %q, %v", c.in, got, dotdot, err, c.want, c.dotdot)
		}
	}
}

// What is clean stays so; nothing panics.
//
//rlp:holds P20
func FuzzCleanPath(f *testing.F) {
	for _, s := range []string{"/", "/a/../b", "//x/./", "a", "/a\x00", "/..", "/\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, dotdot, err := caps.CleanPath(s)
		if err != nil {
			if got != "" {
				t.Fatalf("CleanPath(%q) = %q beside the error %v", s, got, err)
			}
			return
		}
		if again, _, err := caps.CleanPath(got); err != nil || again != got {
			t.Fatalf("CleanPath is not idempotent: %q, %q, %q, %v", s, got, again, err)
		}
		if got != path.Clean(s) {
			t.Fatalf("CleanPath(%q) = %q, path.Clean says %q", s, got, path.Clean(s))
		}
		if dots := strings.Contains("/"+s+"/", "/../"); dots != dotdot {
			t.Fatalf("CleanPath(%q): dotdot %v", s, dotdot)
		}
		if !caps.IsName(caps.FS, got) {
			t.Fatalf("%q is clean and yet no name", got)
		}
	})
}

// TestParseHost holds one table of hosts, in a policy and in a URL alike.
//
//rlp:holds R19 R20 R22 P15
func TestParseHost(t *testing.T) {
	for _, c := range []struct{ in, https, refusal string }{
		{in: "api.example.com", https: "api.example.com:443"},
		{in: "API.Example.COM", https: "api.example.com:443"},
		{in: "api.example.com.", https: "api.example.com:443"},
		{in: "api.example.com:8443", https: "api.example.com:8443"},
		{in: "api.example.com.:8443", https: "api.example.com:8443"},
		{in: "bücher.example", https: "xn--bcher-kva.example:443"},
		{in: "BÜCHER.example", https: "xn--bcher-kva.example:443"},
		{in: "xn--bcher-kva.example", https: "xn--bcher-kva.example:443"},
		{in: "exa\u00admple.com", https: "example.com:443"},
		{in: "example。com", https: "example.com:443"},
		{in: "localhost", https: "localhost:443"},
		{in: "10.1.2.3:8443", https: "10.1.2.3:8443"},
		{in: "[::1]", https: "[::1]:443"},
		{in: "[::1]:8443", https: "[::1]:8443"},
		{in: "[2001:DB8:0:0:0:0:0:1]", https: "[2001:db8::1]:443"},
		{in: "3com.com", https: "3com.com:443"},
		{in: "", refusal: "empty"},
		{in: "0\x8f", refusal: "UTF-8"},
		{in: "0\ufffd", refusal: "no host name"},
		{in: "example.com..", refusal: "no host name"},
		{in: ".example.com", refusal: "no host name"},
		{in: "a..b", refusal: "no host name"},
		{in: "a_b.example.com", refusal: "no host name"},
		{in: "-a.example.com", refusal: "no host name"},
		{in: strings.Repeat("a", 64) + ".com", refusal: "no host name"},
		{in: "https://example.com", refusal: "write only host"},
		{in: "example.com/x", refusal: "write only host"},
		{in: "user@example.com", refusal: "write only host"},
		{in: "a@b@example.com", refusal: "write only host"},
		{in: "example.com ", refusal: "write only host"},
		{in: "exa mple.com", refusal: "write only host"},
		{in: "example.com\x00", refusal: "write only host"},
		{in: "example.com\\x", refusal: "write only host"},
		{in: "*.example.com", refusal: "write only host"},
		{in: "*", refusal: "write only host"},
		{in: "fe80::1%eth0", refusal: "write only host"},
		{in: "example.com:", refusal: "port"},
		{in: "example.com:0", refusal: "port"},
		{in: "example.com:0443", refusal: "port"},
		{in: "example.com:+443", refusal: "port"},
		{in: "example.com:99999", refusal: "port"},
		{in: "example.com:65536", refusal: "port"},
		{in: "example.com:http", refusal: "port"},
		{in: "example.com:443:443", refusal: "colon"},
		{in: "::1", refusal: "colon"},
		{in: "[::1", refusal: "IPv6"},
		{in: "[::1]x", refusal: "after the address"},
		{in: "[::1]:0", refusal: "port"},
		{in: "[127.0.0.1]", refusal: "IPv6"},
		{in: "[::ffff:127.0.0.1]", refusal: "IPv4"},
		{in: "[fe80::1%25eth0]", refusal: "write only host"},
		{in: "127.1", refusal: "disguise"},
		{in: "0x7f.1", refusal: "disguise"},
		{in: "0x7f000001", refusal: "disguise"},
		{in: "2130706433", refusal: "disguise"},
		{in: "0177.0.0.1", refusal: "disguise"},
		{in: "127.0.0.01", refusal: "disguise"},
		{in: "127.0.0.256", refusal: "disguise"},
		{in: "1.2.3.4.5", refusal: "disguise"},
		{in: "１２７.1", refusal: "disguise"},
	} {
		got, err := caps.HostPort("https", c.in)
		switch {
		case c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)):
			t.Errorf("HostPort(%q) = %q, %v; want an error about %q", c.in, got, err, c.refusal)
		case c.refusal == "" && (err != nil || got != c.https):
			t.Errorf("HostPort(%q) = %q, %v; want %q", c.in, got, err, c.https)
		}
	}
	if got, err := caps.HostPort("http", "example.com"); got != "example.com:80" || err != nil {
		t.Errorf("over http: %q, %v", got, err)
	}
	if got, err := caps.HostPort("ftp", "example.com"); err == nil {
		t.Errorf("over ftp: %q", got)
	}
}

// What is canonical stays so; nothing panics.
//
//rlp:holds P20
func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"Example.com.", "[::1]:443", "0x7f.1", "bücher.example:80", "a@b", "1.2.3.4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, port, err := caps.ParseHost(s)
		if err != nil {
			return
		}
		if port < 0 || port > 65535 || strings.ToLower(host) != host || strings.ContainsAny(host, " /@[]%\x00") {
			t.Fatalf("ParseHost(%q) = %q, %d", s, host, port)
		}
		scope, err := caps.HostPort("https", s)
		if err != nil || !caps.IsName(caps.Net, scope) {
			t.Fatalf("HostPort(%q) = %q, %v: no name of a request", s, scope, err)
		}
		if again, err := caps.HostPort("http", scope); err != nil || again != scope {
			t.Fatalf("HostPort is not idempotent: %q, %q, %q, %v", s, scope, again, err)
		}
		if _, err := netip.ParseAddr(host); err != nil && strings.Trim(host, "0123456789.") == "" {
			t.Fatalf("ParseHost(%q) = %q: a number in disguise", s, host)
		}
	})
}

// TestUncleanRequests holds that Check takes only what is canonical: what a
// canonicalizer would have changed is refused, under the widest grant there is.
//
//rlp:holds P14 P15 C7
func TestUncleanRequests(t *testing.T) {
	s := everything(t)
	for _, r := range []caps.Request{
		{Family: caps.FS, Name: "a"},
		{Family: caps.FS, Name: ""},
		{Family: caps.FS, Name: "/a/"},
		{Family: caps.FS, Name: "//a"},
		{Family: caps.FS, Name: "/a//b"},
		{Family: caps.FS, Name: "/a/../b"},
		{Family: caps.FS, Name: "/a/.."},
		{Family: caps.FS, Name: "/."},
		{Family: caps.FS, Name: "/a/./b"},
		{Family: caps.FS, Name: "/a\x00"},
		{Family: caps.FS, Name: "/" + strings.Repeat("a", caps.MaxPath)},
		{Family: caps.FS, Name: "*"},
		{Family: caps.FS, Mode: 3, Name: "/a"},
		{Family: caps.Net, Name: "example.com"},
		{Family: caps.Net, Name: "Example.com:443"},
		{Family: caps.Net, Name: "example.com.:443"},
		{Family: caps.Net, Name: "127.1:443"},
		{Family: caps.Net, Name: "example.com:0443"},
		{Family: caps.Net, Name: "example.com:65536"},
		{Family: caps.Net, Name: "*.example.com:443"},
		{Family: caps.Net, Name: "[::ffff:1.2.3.4]:443"},
		{Family: caps.Net, Name: "[::0]:443"},
		{Family: caps.Net, Name: "::1:443"},
		{Family: caps.Net, Mode: 17, Name: "a:1"},
		{Family: caps.KBRead, Name: ""},
		{Family: caps.KBRead, Name: "Contacts"},
		{Family: caps.KBWrite, Name: "a b"},
		{Family: caps.KBWrite, Name: "contacts_raw"},
		{Family: caps.Secrets, Name: "mail/key"},
		{Family: caps.Secrets, Name: "runloop/../key"},
		{Family: caps.Secrets, Name: "runloop/a/b@h:443"},
		{Family: caps.Model, Name: "openai:"},
		{Family: caps.Model, Name: ":x"},
		{Family: caps.Model, Name: "openai:*"},
		{Family: caps.Exec, Name: "grep"},
		{Family: caps.Exec, Name: "/usr/bin/../bin/sh"},
		{Family: caps.Exec, Name: "/"},
		{Family: caps.Env, Name: "A=B"},
		{Family: caps.Env, Name: ""},
		{Family: caps.Time, Name: "now"},
		{Family: caps.Agents, Name: "../x"},
		{Family: caps.MCP, Name: "a b"},
		{Family: caps.NumFamilies + 1, Name: "x"},
	} {
		d := s.Check(r)
		if d.Allow || d.Code != caps.InvalidRequest || d.Layer != -1 || s.CheckTree(r) != d {
			t.Errorf("%v %q: %+v", r.Family, r.Name, d)
		}
	}
	// the control: the same set allows what is canonical
	for _, r := range []caps.Request{
		{Family: caps.FS, Name: "/a/..b"},
		{Family: caps.FS, Name: "/a\nb*"},
		{Family: caps.Net, Name: "[::1]:443"},
		{Family: caps.Env, Name: "PATH"},
		{Family: caps.Time, Name: "*"},
		{Family: caps.Time, Name: ""},
	} {
		if d := s.Check(r); !d.Allow {
			t.Errorf("%v %q: %+v", r.Family, r.Name, d)
		}
	}
}
