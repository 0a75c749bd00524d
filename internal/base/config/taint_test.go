package config_test

import (
	"errors"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// What marks a run and who is believed is what can be: anything else is refused
// with its place, since it would mark nothing, or believe somebody else.
//
//rlp:holds Y28
func TestSourcesOfTaint(t *testing.T) {
	const good = "[security.caps]\nuntrusted = [\"fs:/downloads\", \"exec:*\", \"kb:recipes\", \"kb:*\", \"input\"]\n" +
		"trusted_hosts = [\"api.example.com\", \"*.example.org:8443\", \"http://10.1.2.3:8080\"]\n[kb]\ndomains = " +
		"[\"recipes\"]\n"
	c, err := load(t, good)
	if err != nil || len(c.Security.Caps.Untrusted) != 5 || len(c.Security.Caps.TrustedHosts) != 3 {
		t.Fatal(c.Security.Caps, err)
	}
	for text, says := range map[string]string{
		`untrusted = ["fs:downloads"]`:                           `2:14: security.caps.untrusted[0] must be fs:/absolute/path`,
		`untrusted = ["input", "https://evil.example"]`:          `2:23: security.caps.untrusted[1] must be`,
		`untrusted = ["kb:drfts"]`:                               `there is no domain "drfts"`,
		`untrusted = "input"`:                                    "must be an array",
		`trusted_hosts = ["*"]`:                                  `2:18: security.caps.trusted_hosts[0] must be a host`,
		`trusted_hosts = ["me@bank.example"]`:                    "must be a host",
		`trusted_hosts = ["https://bank.example/statements"]`:    "must be a host",
		`trusted_hosts = ["bank.example", "ftp://bank.example"]`: "trusted_hosts[1]",
	} {
		_, err := load(t, "[security.caps]\n"+text+"\n")
		var at *tomlfile.Error
		if err == nil || !strings.Contains(err.Error(), says) || !errors.As(err, &at) {
			t.Errorf("%s: %v does not say %q", text, err, says)
		}
	}
}
