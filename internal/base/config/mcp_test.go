package config_test

import (
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/config"
)

// Nothing goes in clear to a server that is not on this machine.
//
//rlp:holds K53
func TestAServerElsewhereIsHTTPS(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://mcp.example.com/x": true, "https://10.0.0.5:8443/": true, "https://[2001:db8::1]/": true,
		"http://127.0.0.1:8080/mcp": true, "http://127.9.9.9/": true, "http://[::1]:8080/": true,
		"http://localhost:8080/":   true,
		"http://mcp.example.com/x": false, "http://10.0.0.5:8443/": false, "http://192.168.1.1/": false,
		"http://0.0.0.0/":               false,
		"http://localhost.example.com/": false, "http://127.0.0.1.example.com/": false, "http://[fe80::1]/": false,
		"ws://127.0.0.1/": false, "https://user:password@mcp.example.com/": false,
	} {
		c, err := config.Parse("config.toml", []byte("[mcp.servers.a]\nurl = \""+url+"\"\n"), nil)
		if ok && (err != nil || c.MCP["a"].URL != url) {
			t.Errorf("%s: %v", url, err)
		}
		if !ok && (err == nil || !strings.Contains(err.Error(), "config.toml:2:7: url must ")) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A value never stands in config.toml: secrets are named, each by its id.
//
//rlp:holds K69
func TestSecretsOfServersAreReferences(t *testing.T) {
	c, err := config.Parse("config.toml", []byte(`
[mcp.servers.listed]
command = ["/usr/bin/server"]
secrets = ["runloop/git-hub/api.token"]
[mcp.servers.named]
command = ["/usr/bin/server", "stdio"]
secrets = { GITHUB_TOKEN = "runloop/github/token", OTHER = "runloop/x/y" }
[mcp.servers.bearer]
url = "https://mcp.example.com/"
secrets = ["runloop/github/token"]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]config.MCPSecret{
		"listed": {{"GIT_HUB_API_TOKEN", "runloop/git-hub/api.token"}},
		"named":  {{"GITHUB_TOKEN", "runloop/github/token"}, {"OTHER", "runloop/x/y"}},
		"bearer": {{"", "runloop/github/token"}},
	} {
		got := c.MCP[name].Secrets
		if len(got) != len(want) {
			t.Fatalf("%s: %v", name, got)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: %v, want %v", name, got[i], want[i])
			}
		}
	}
	for _, value := range []string{
		`["sk-live-4eC39HqLyjWDarjtT1zdp7dc"]`,
		`{ TOKEN = "sk-live-4eC39HqLyjWDarjtT1zdp7dc" }`, `["${TOKEN}"]`,
	} {
		if _, err := config.Parse("config.toml", []byte("[mcp.servers.a]\ncommand = [\"/x\"]\nsecrets = "+value+"\n"), nil); err == nil {
			t.Errorf("%s is taken for an id", value)
		}
	}
}
