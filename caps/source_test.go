package caps

import (
	"strings"
	"testing"
)

// A source is read in its one spelling, and says it again; what is none is
// refused with what to write.
//
//rlp:holds Y28
func TestSources(t *testing.T) {
	for text, want := range map[string]string{
		"fs:/downloads": "", "fs:/a//b/./c/": "fs:/a/b/c", "fs:/": "", "exec:/usr/bin/curl": "", "exec:*": "",
		"kb:drafts": "", "kb:*": "", "input": "",
	} {
		if want == "" {
			want = text
		}
		s, err := ParseSource(text)
		if err != nil || s.String() != want {
			t.Errorf("%s: %q, %v", text, s, err)
		}
	}
	for _, text := range []string{
		"", "fs", "fs:", "fs:*", "fs:downloads", "fs:~/x", "fs:/a/*", "exec:", "exec:curl", "exec:/", "kb:", "kb:Drafts",
		"kb:contacts_raw",
		"input:x", "http:evil.example", "mcp:github", "agents:critic", "net:x", "fs:read:/downloads", "fs:/a\x00b", "fs:/a\n",
	} {
		if s, err := ParseSource(text); err == nil {
			t.Errorf("%q is read as %s", text, s)
		}
	}
}

// A trusted host is believed over https at its own port, unless more is said.
//
//rlp:holds Y28
func TestTrustedHosts(t *testing.T) {
	for text, want := range map[string]Grant{
		"api.example.com":          {Net, HTTPS, "api.example.com:443"},
		"API.Example.com.":         {Net, HTTPS, "api.example.com:443"},
		"https://api.example.com":  {Net, HTTPS, "api.example.com:443"},
		"api.example.com:8443":     {Net, HTTPS, "api.example.com:8443"},
		"*.example.org":            {Net, HTTPS, "*.example.org:443"},
		"http://10.1.2.3:8080":     {Net, HTTP, "10.1.2.3:8080"},
		"http://intranet.example":  {Net, HTTP, "intranet.example:80"},
		"[::1]:8443":               {Net, HTTPS, "[::1]:8443"},
		"bücher.example":           {Net, HTTPS, "xn--bcher-kva.example:443"},
		"http://*.intranet.corp:8": {Net, HTTP, "*.intranet.corp:8"},
	} {
		if got, err := ParseTrustedHost(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "*", "https://*", "http://*", "a@b", "user:pw@host", "host/path", "https://host/", "ftp://host", "*.*.org",
		"*.1.2.3.4",
		"127.1", "host:0", "host:443:1", "ex*mple.com", "*.", "http:/x", "://x", "a b",
	} {
		if g, err := ParseTrustedHost(text); err == nil {
			t.Errorf("%q is read as %+v", text, g)
		} else if strings.Contains(err.Error(), "\x00") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
