package caps_test

import (
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// get, head, the seven that change things
const (
	httpsRead  = 0x03
	httpsWrite = 0xfc
)

// TestParseGrant holds the spellings and what each one means; printed, the
// grant is canonical, and parsed again it is itself.
//
//rlp:holds C1 C2 C3 C4 C5 C17 C18 C19 C26 P11
func TestParseGrant(t *testing.T) {
	for _, c := range []struct {
		in    string
		f     caps.Family
		modes caps.ModeSet
		scope string
		print string // "" when it prints as it was written
	}{
		{"fs:read:/tmp", caps.FS, 1 << caps.Read, "/tmp", ""},
		{"fs:read:/x", caps.FS, 1 << caps.Read, "/x", ""},
		{"fs:read:*", caps.FS, 1 << caps.Read, "/", ""},
		{"fs:read:/", caps.FS, 1 << caps.Read, "/", "fs:read:*"},
		{"fs:write:/tmp", caps.FS, 1 << caps.Write, "/tmp", ""},
		{"fs:delete:/tmp/x", caps.FS, 1 << caps.Delete, "/tmp/x", ""},
		{"fs:read:/a//b/../c/", caps.FS, 1 << caps.Read, "/a/c", "fs:read:/a/c"},
		{"fs:read:/My Documents/a:b", caps.FS, 1 << caps.Read, "/My Documents/a:b", ""},
		{"network:https:api.example.com", caps.Net, caps.HTTPS, "api.example.com:443", ""},
		{"network:https:api.example.com:443", caps.Net, caps.HTTPS, "api.example.com:443", "network:https:api.example.com"},
		{"network:https:api.example.com:8443", caps.Net, caps.HTTPS, "api.example.com:8443", ""},
		{"network:https:API.example.com.", caps.Net, caps.HTTPS, "api.example.com:443", "network:https:api.example.com"},
		{"network:tcp:DB.example.com.:5432", caps.Net, caps.TCP, "db.example.com:5432", "network:tcp:db.example.com:5432"},
		{"network:tcp:db.example.com:443", caps.Net, caps.TCP, "db.example.com:443", ""},
		{"network:tcp:[::1]:22", caps.Net, caps.TCP, "[::1]:22", ""},
		{"network:http:api.example.com", caps.Net, caps.HTTP, "api.example.com:80", ""},
		{"network:http:api.example.com:443", caps.Net, caps.HTTP, "api.example.com:443", ""},
		{"network:https:*", caps.Net, caps.HTTPS, "*", ""},
		{"network:https:*.example.org", caps.Net, caps.HTTPS, "*.example.org:443", ""},
		{"network:https:[::1]:8443", caps.Net, caps.HTTPS, "[::1]:8443", ""},
		{"network:http:get", caps.Net, 1 << 8, "*", ""},
		{"network:https:get@api.example.com", caps.Net, 1, "api.example.com:443", ""},
		{"network:https:head,get@*", caps.Net, 3, "*", "network:https:get,head@*"},
		{"network:https:get,head", caps.Net, 3, "*", "network:https:get,head@*"},
		{"network:https:get:443", caps.Net, caps.HTTPS, "get:443", ""},
		{"network:http:other@x.org:81", caps.Net, 1 << 15, "x.org:81", ""},
		{
			"network:read:api.example.com", caps.Net, httpsRead, "api.example.com:443",
			"network:https:get,head@api.example.com",
		},
		{
			"network:read:https://api.example.com:8443/", caps.Net, httpsRead, "api.example.com:8443",
			"network:https:get,head@api.example.com:8443",
		},
		{
			"network:read:http://api.example.com", caps.Net, httpsRead << 8, "api.example.com:80",
			"network:http:get,head@api.example.com",
		},
		{"network:write:*", caps.Net, httpsWrite, "*", "network:https:post,put,patch,delete,options,other@*"},
		{"net:api.example.com", caps.Net, caps.HTTPS, "api.example.com:443", "network:https:api.example.com"},
		{"net:api.example.com:8443", caps.Net, caps.HTTPS, "api.example.com:8443", "network:https:api.example.com:8443"},
		{"process:exec:/usr/bin/grep", caps.Exec, 1, "/usr/bin/grep", ""},
		{"process:exec:*", caps.Exec, 1, "*", ""},
		{"env:read:PATH", caps.Env, 1, "PATH", ""},
		{"env:read:HOME", caps.Env, 1, "HOME", ""},
		{"time:read:*", caps.Time, 1, "*", ""},
		{"kb:read:contacts", caps.KBRead, 1, "contacts", ""},
		{"kb:read:contacts_raw", caps.KBRead, 1, "contacts_raw", ""},
		{"kb:write:drafts", caps.KBWrite, 1, "drafts", ""},
		{"kb:write:*", caps.KBWrite, 1, "*", ""},
		{"secrets:read:runloop/mail/smtp_api_key", caps.Secrets, 3, "runloop/mail/smtp_api_key", ""},
		{"secrets:read:runloop/a/b@api.example.com", caps.Secrets, 3, "runloop/a/b@api.example.com:443", ""},
		{"secrets:get:runloop/a/b", caps.Secrets, 1 << caps.Get, "runloop/a/b", ""},
		{"secrets:use:runloop/a/b@*.x.org:8443", caps.Secrets, 1 << caps.Use, "runloop/a/b@*.x.org:8443", ""},
		{"model:use:*", caps.Model, 1, "*", ""},
		{"model:use:openai:*", caps.Model, 1, "openai:*", ""},
		{"model:use:local:echo", caps.Model, 1, "local:echo", ""},
		{"mcp:call:github", caps.MCP, 1, "github", ""},
		{"agents:launch:critic", caps.Agents, 1, "critic", ""},
	} {
		want := caps.Grant{Family: c.f, Modes: c.modes, Scope: c.scope}
		got, err := caps.ParseGrant(c.in)
		if err != nil || got != want {
			t.Errorf("ParseGrant(%q) = %+v, %v; want %+v", c.in, got, err, want)
			continue
		}
		print := []string{c.print}
		if c.print == "" {
			print[0] = c.in
		}
		if !slices.Equal(got.Strings(), print) {
			t.Errorf("%q prints as %q, want %q", c.in, got.Strings(), print)
		}
		if again, err := caps.ParseGrant(got.String()); err != nil || again != got {
			t.Errorf("%q parsed again is %+v, %v", got, again, err)
		}
	}
}

// TestMalformedCapabilities holds that what is malformed is an error that says
// what to write.
//
//rlp:holds C2 C21 R14 R15 R31
func TestMalformedCapabilities(t *testing.T) {
	for in, refusal := range map[string]string{
		"":                                  "domain:action:scope",
		"fs":                                "domain:action:scope",
		"fs:read":                           "domain:action:scope",
		"fs:read:":                          "domain:action:scope",
		"fs::/tmp":                          "domain:action:scope",
		":read:/tmp":                        "domain:action:scope",
		"fs:read:tmp":                       "relative",
		"fs:read:~/x":                       "relative",
		"fs:read:/tmp/*":                    "globs",
		"fs:read:/tmp ":                     "blanks",
		"fs: read:/tmp":                     "blanks",
		" fs:read:/tmp":                     "blanks",
		"fs:read: /tmp":                     "blanks",
		"fs:read:/tmp\x00":                  "control",
		"FS:read:/tmp":                      "unknown domain",
		"Fs:read:/tmp":                      "unknown domain",
		"fs:Read:/tmp":                      "no action",
		"fs:exec:/tmp":                      "no action",
		"fs:*:/tmp":                         "no action",
		"*:*:*":                             "unknown domain",
		"exec:*:*":                          "unknown domain",
		"registry:read:x":                   "unknown domain",
		"process:exec:grep":                 "relative",
		"process:exec:/":                    "no scope",
		"process:run:/bin/sh":               "no action",
		"env:read:A=B":                      "no scope",
		"env:read:A B":                      "no scope",
		"env:write:PATH":                    "no action",
		"time:read:now":                     "no scope",
		"kb:read:Contacts":                  "no scope",
		"kb:read:*_raw":                     "no scope",
		"kb:write:contacts_raw":             "no scope",
		"kb:delete:contacts":                "read or write",
		"secrets:read:smtp_api_key":         "runloop/<scope>/<name>",
		"secrets:read:runloop/a":            "runloop/<scope>/<name>",
		"secrets:read:runloop/a/b/c":        "runloop/<scope>/<name>",
		"secrets:read:runloop/../b":         "runloop/<scope>/<name>",
		"secrets:read:Runloop/a/b":          "runloop/<scope>/<name>",
		"secrets:read:runloop/a/b@":         "empty",
		"secrets:read:runloop/a/b@127.1":    "disguise",
		"model:use:gpt-*":                   "no scope",
		"model:use:openai:gpt-*":            "no scope",
		"mcp:call:a/b":                      "no scope",
		"agents:launch:../x":                "no scope",
		"agents:launch:Critic":              "no scope",
		"network:ftp:x.org":                 "no action",
		"network:*:x.org":                   "no action",
		"network:https:":                    "domain:action:scope",
		"network:https:get@":                "empty",
		"network:https:get,x.org":           "no method",
		"network:https:GET@x.org":           "no method",
		"network:https:@x.org":              "no method",
		"network:https:https://x.org":       "write only host",
		"network:https:*.1.2.3":             "disguise",
		"network:https:*.1.2.3.4":           "wildcard below an address",
		"network:https:*.*.x.org":           "write only host",
		"network:https:2130706433":          "disguise",
		"network:read:https://x.org/a":      "leave out the path",
		"network:read:ftp://x.org":          "neither https nor http",
		"network:read:https://u@x.org":      "write only host",
		"network:read:get@x.org":            "write only host",
		"net:":                              "empty",
		"net:https://x.org":                 "write only host",
		"net:127.1":                         "disguise",
		"network:https:x.org:443 fs:read:/": "write only host",
	} {
		g, err := caps.ParseGrant(in)
		if err == nil || !strings.Contains(err.Error(), refusal) || g != (caps.Grant{}) {
			t.Errorf("ParseGrant(%q) = %+v, %v; want an error about %q", in, g, err, refusal)
		}
	}
}

// TestParseDeny holds what a deny list may say beyond a grant.
func TestParseDeny(t *testing.T) {
	all := func(f caps.Family, scope string) caps.Grant {
		return caps.Grant{Family: f, Modes: caps.AllModes(f), Scope: scope}
	}
	for _, c := range []struct {
		in   string
		want []caps.Grant
	}{
		{"exec:*:*", []caps.Grant{all(caps.Exec, "*")}},
		{"process:*:/bin/sh", []caps.Grant{all(caps.Exec, "/bin/sh")}},
		{"kb:write:*", []caps.Grant{all(caps.KBWrite, "*")}},
		{"kb:*:contacts", []caps.Grant{all(caps.KBRead, "contacts"), all(caps.KBWrite, "contacts")}},
		{"fs:*:/tmp", []caps.Grant{all(caps.FS, "/tmp")}},
		{"fs:write:/tmp", []caps.Grant{{Family: caps.FS, Modes: 1 << caps.Write, Scope: "/tmp"}}},
		{"network:*:*", []caps.Grant{all(caps.Net, "*")}},
		{"net:*:*", []caps.Grant{all(caps.Net, "*")}},
		{"net:x.org", []caps.Grant{
			{Family: caps.Net, Modes: caps.HTTPS | caps.TCP, Scope: "x.org:443"},
			{Family: caps.Net, Modes: caps.HTTP | caps.TCP, Scope: "x.org:80"},
		}},
		{"net:x.org:81", []caps.Grant{all(caps.Net, "x.org:81")}},
		{"network:write:x.org", []caps.Grant{
			{Family: caps.Net, Modes: httpsWrite | caps.TCP, Scope: "x.org:443"},
			{Family: caps.Net, Modes: httpsWrite<<8 | caps.TCP, Scope: "x.org:80"},
		}},
		{"network:http:*", []caps.Grant{{Family: caps.Net, Modes: caps.HTTP, Scope: "*"}}},
	} {
		got, err := caps.ParseDeny(c.in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("ParseDeny(%q) = %+v, %v; want %+v", c.in, got, err, c.want)
		}
	}
	everyFamily, err := caps.ParseDeny("*:*:*")
	if err != nil || len(everyFamily) != int(caps.NumFamilies) {
		t.Errorf("ParseDeny(*:*:*) = %v, %v", everyFamily, err)
	}
	for _, in := range []string{"*:*:/tmp", "network:read:https://x.org/a", "exec:*", "fs:*:", "nothing:*:*"} {
		if got, err := caps.ParseDeny(in); err == nil {
			t.Errorf("ParseDeny(%q) = %+v", in, got)
		}
	}
}

// TestParseRequest holds which requests a capability stands for when it is
// asked for, as a tool's requirement does.
//
//rlp:holds C1
func TestParseRequest(t *testing.T) {
	for in, want := range map[string][]caps.Request{
		"fs:read:/tmp/[x]":         {{Family: caps.FS, Mode: caps.Read, Name: "/tmp/[x]"}},
		"fs:read:/a/../b":          {{Family: caps.FS, Mode: caps.Read, Name: "/b"}},
		"fs:delete:*":              {{Family: caps.FS, Mode: caps.Delete, Name: "/"}},
		"network:http:get@x.org":   {{Family: caps.Net, Mode: 8, Name: "x.org:80"}},
		"network:http:get":         {{Family: caps.Net, Mode: 8, Name: "*"}},
		"secrets:read:runloop/a/b": {{Family: caps.Secrets, Mode: caps.Get, Name: "runloop/a/b"}},
		"secrets:read:runloop/a/b@x.org": {
			{Family: caps.Secrets, Mode: caps.Get, Name: "runloop/a/b"},
			{Family: caps.Secrets, Mode: caps.Use, Name: "runloop/a/b@x.org:443"},
		},
		"network:read:https://api.example.com:8443/x": {
			{Family: caps.Net, Mode: 0, Name: "api.example.com:8443"}, {Family: caps.Net, Mode: 1, Name: "api.example.com:8443"},
		},
	} {
		got, err := caps.ParseRequest(in)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("ParseRequest(%q) = %+v, %v; want %+v", in, got, err, want)
		}
	}
	if got, err := caps.ParseRequest("net:x.org"); err != nil || len(got) != 8 {
		t.Errorf("a host stands for its eight method classes: %v, %v", got, err)
	}
	if got, err := caps.ParseRequest("fs:read"); err == nil {
		t.Errorf("ParseRequest(fs:read) = %v", got)
	}
}

// What is read prints and reads as itself; nothing panics.
//
//rlp:holds P20
func FuzzParseGrant(f *testing.F) {
	for _, s := range []string{
		"fs:read:/tmp", "network:https:get,head@x.org:8443", "net:x.org", "secrets:read:runloop/a/b@*.x.org",
		"model:use:openai:*", "kb:read:contacts_raw", "exec:*:*", "network:read:https://x.org/", "::", "fs:read:/a/../b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if list, err := caps.ParseDeny(s); err == nil {
			if _, _, err := (caps.Set{}).Narrow(&caps.Layer{Deny: entriesOf(list)}); err != nil {
				t.Fatalf("ParseDeny(%q) = %v cannot be denied: %v", s, list, err)
			}
		}
		g, err := caps.ParseGrant(s)
		if err != nil {
			if g != (caps.Grant{}) {
				t.Fatalf("ParseGrant(%q) = %+v beside the error %v", s, g, err)
			}
			return
		}
		if again, err := caps.ParseGrant(g.String()); err != nil || again != g {
			t.Fatalf("%q is %+v, printed %q, and parsed again %+v, %v", s, g, g, again, err)
		}
		set, err := caps.Base(entriesOf([]caps.Grant{g}), caps.Limits{})
		if err != nil || !set.Covers(g) || len(set.Grants()) != 1 || set.Grants()[0] != g {
			t.Fatalf("the base of %q is %v, %v", s, set, err)
		}
	})
}

func entriesOf(list []caps.Grant) []caps.Entry {
	var out []caps.Entry
	for _, g := range list {
		out = append(out, caps.Entry{Grant: g})
	}
	return out
}

// A method and a host that are put together by a colon, as by the seed's writers,
// are told how they are; a host that is called like a method is a host.
//
//rlp:holds C6 C17
func TestMethodsStandBeforeHosts(t *testing.T) {
	for text, want := range map[string]string{
		"network:http:get:*":               "write get",
		"network:http:get:x.org":           "write get@x.org",
		"network:https:delete:x.org:8443":  "write delete@x.org:8443",
		"network:https:post:[2001:db8::1]": "write post@[2001:db8::1]",
	} {
		_, grantErr := caps.ParseGrant(text)
		_, denyErr := caps.ParseDeny(text)
		for what, err := range map[string]error{"grant": grantErr, "deny": denyErr} {
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s as a %s: %v, want %s", text, what, err, want)
			}
		}
	}
	for _, text := range []string{"network:http:get:8443", "network:http:get", "network:http:get@x.org"} {
		if _, err := caps.ParseGrant(text); err != nil {
			t.Errorf("control: %s: %v", text, err)
		}
	}
}

// TestDecisionTable holds the seed's examples of what a set has.
//
//rlp:holds C6 C7 C8 C9 C18 C19 C24
func TestDecisionTable(t *testing.T) {
	for _, c := range []struct {
		set   []string
		asked string
		want  bool
	}{
		{[]string{"fs:read:*", "network:http:get"}, "fs:read:/tmp/file", true},
		{[]string{"fs:read:*", "network:http:get"}, "network:http:get@x.org", true},
		{[]string{"fs:read:*", "network:http:get"}, "network:http:post@x.org", false},
		{[]string{"fs:read:*", "network:http:get"}, "network:https:get@x.org", false},
		{[]string{"fs:write:/tmp"}, "fs:write:/tmp/a", true},
		{[]string{"fs:write:/tmp"}, "fs:write:/tmp", true},
		{[]string{"fs:write:/tmp"}, "fs:write:/tmpfoo", false},
		{[]string{"fs:write:/tmp"}, "fs:write:/tmp/../etc", false},
		{[]string{"fs:write:/tmp"}, "fs:read:/tmp/a", false},
		{[]string{"fs:write:/tmp"}, "fs:delete:/tmp/a", false},
		{[]string{"fs:read:/tmp/file"}, "fs:read:*", false},
		{[]string{"fs:read:/tmp/file"}, "fs:read:/tmp", false},
		{[]string{"env:read:PATH"}, "env:read:*", false},
		{[]string{"env:read:*"}, "env:read:*", true},
		{[]string{"env:read:PATH"}, "env:read:PATH", true},
		{[]string{"env:read:PATH"}, "env:read:path", false},
		{[]string{"env:read:PATH"}, "env:read:PATHEXT", false},
		{[]string{"process:exec:/usr/bin/grep"}, "process:exec:/usr/bin/grep", true},
		{[]string{"process:exec:/usr/bin/grep"}, "process:exec:/usr/bin/grep2", false},
		{[]string{"process:exec:/usr/bin/grep"}, "process:exec:/usr/bin/grep/x", false},
		{[]string{"process:exec:/usr/bin"}, "process:exec:/usr/bin/grep", false},
		{[]string{"process:exec:/usr/bin/grep"}, "process:exec:*", false},
		{nil, "fs:read:/tmp", false},
		{nil, "time:read:*", false},
	} {
		if got := allowed(t, set(t, c.set...), c.asked); got != c.want {
			t.Errorf("%v has %s: %v, want %v", c.set, c.asked, got, c.want)
		}
	}
	denied := narrow(t, set(t, "env:read:*"), &caps.Layer{Deny: denies(t, "env:read:HOME")})
	if allowed(t, denied, "env:read:*") || !allowed(t, denied, "env:read:PATH") {
		t.Errorf("%v holds * although HOME is denied, or denies PATH", denied)
	}
	if (caps.Set{}).Check(caps.Request{Family: caps.FS, Name: "/"}).Allow || !(caps.Set{}).IsEmpty() {
		t.Error("the zero Set grants something")
	}
}

// TestDenialCarriesCanonicalCapability holds what a denial names.
//
//rlp:holds C25
func TestDenialCarriesCanonicalCapability(t *testing.T) {
	for r, want := range map[caps.Request]string{
		{Family: caps.FS, Mode: caps.Delete, Name: "/tmp/x"}:                  "fs:delete:/tmp/x",
		{Family: caps.Net, Mode: 2, Name: "x.org:443"}:                        "network:https:post@x.org",
		{Family: caps.KBRead, Name: "contacts"}:                               "kb:read:contacts",
		{Family: caps.Secrets, Name: "runloop/a/b"}:                           "secrets:read:runloop/a/b",
		{Family: caps.Secrets, Mode: caps.Use, Name: "runloop/a/b@x.org:443"}: "secrets:read:runloop/a/b@x.org",
		{Family: caps.Time, Name: "*"}:                                        "time:read:*",
		{Family: caps.Exec, Name: "/bin/sh"}:                                  "process:exec:/bin/sh",
	} {
		if got := r.String(); got != want {
			t.Errorf("%+v is %q, want %q", r, got, want)
		}
		if g, err := caps.ParseGrant(want); err != nil || !mustBase(t, entriesOf([]caps.Grant{g}),
			caps.Limits{}).Check(r).Allow {
			t.Errorf("%q does not allow what it names: %v", want, err)
		}
	}
}
