package config_test

import (
	"os"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/config"
)

// The settings that docs/model.md shows are settings.
func TestModelSettingsInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/model.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## config.toml\n")
	rest, _, _ = strings.Cut(rest, "\nA model is named")
	c, err := config.Parse("docs/model.md", []byte(rest), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Model.Providers) != 3 || len(c.Model.Prices) != 2 || !c.Model.Cache ||
		c.Model.Default != "openai:gpt-4o-mini" {
		t.Errorf("%+v", c.Model)
	}
}

// The servers that docs/mcp.md shows can be configured as they stand there.
func TestMCPSettingsInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "    # config.toml\n")
	rest, _, _ = strings.Cut(rest, "\n`secrets = ")
	c, err := config.Parse("docs/mcp.md", []byte(rest), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.MCP) != 2 || len(c.MCP["github"].Secrets) != 1 || c.MCP["search"].URL == "" {
		t.Errorf("%+v", c.MCP)
	}
}
